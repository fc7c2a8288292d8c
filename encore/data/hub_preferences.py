"""Preferences of a data set that has pairs or ranked lists, of texts or of conversations."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from encore.data import columns, hub
from encore.data.preferences import Preference, by_score, split_of_prompt
from encore.errors import UserError, nearest
from encore.recipe.base import present
from encore.recipe.task import Comparisons
from encore.worlds.text import prompt as fill

HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"  # marks of turns in Anthropic's data set HH


def of_task(
    task: Comparisons,
    template: str = "{question}",
    validation: float = 0.0,
    problems: int | None = None,
) -> list[Preference]:
    """Return the preferences of the data set that `task` names, by its Hub name or its file.

    The keys of `task` are {hub, revision, split, optionally subset} or {file}, and

    - chosen, rejected and optionally prompt: columns of texts, or of conversations that end with the
      response. Without a prompt column the prompt is the turns before the response or, for texts as in
      HH, the common beginning of chosen and rejected up to the last "Assistant:". The chosen response has
      score 1, the other 0; or
    - prompt, and responses: a column of lists of mappings, whose keys `text` and `rank` name (rank 1 is the
      best). The score is -rank.

    `template` is put around the prompt. Spaces at the prompt's end are dropped: tokenised apart from a reply,
    they would be tokens that no other stage's prompts end with. Takes the first `problems` rows, or all.
    Raises UserError for a column that is missing, for too few rows and for texts that share no dialogue.
    """
    data = hub.load(task, _named(task, ("prompt", "chosen", "rejected", "responses")))
    hub.require_rows(task, len(data), problems)
    rows: list[Preference] = []
    for number in range(problems or len(data)):
        before, texts, scores = _compared(task, data[number], number)
        prompt = fill(template, before)
        rows.append(
            {
                "prompt": prompt,
                "question": before,
                "answer": "",
                "difficulty": 0,
                "responses": [_last_turn(text) for text in texts],
                "truncated": [False] * len(texts),
                "scores": scores,
                "ranking": by_score(scores),
                "split": split_of_prompt(prompt, validation),
            }
        )
    return rows


def _named(task: Comparisons, keys: Sequence[str]) -> list[str]:
    """Return the `keys` that the task sets."""
    return [key for key in keys if getattr(task, key) is not None]


def answered(task: Comparisons, most: int | None = None) -> list[tuple[str, str]]:
    """Return (prompt, best reply) of the first `most` rows, or all, of the data set that `task` names."""
    rows = hub.load(task, _named(task, ("prompt", "chosen", "rejected")))
    ranked = of_task(task, problems=min(most or len(rows), len(rows)))
    return [(row["question"], row["responses"][row["ranking"][0]]) for row in ranked]


def _compared(task: Comparisons, row: Mapping[str, Any], number: int) -> tuple[str, list, list[float]]:
    """Return prompt, responses and scores of a row; messages name the row by `number`."""
    if task.responses is not None:
        listed, text, rank = row[task.responses], present(task.text), present(task.rank)
        for key, column in (("text", text), ("rank", rank)):
            if absent := [reply for reply in listed if column not in reply]:
                known = nearest(column, [*absent[0]])
                raise UserError(f"task.{key}: no {column!r} in {task.responses} of row {number}{known}")
        ranks = [reply[rank] for reply in listed]
        scores = [math.nan if rank is None else -float(rank) for rank in ranks]
        return _asked(present(task.prompt), row), [reply[text] for reply in listed], scores
    chosen, rejected = present(task.chosen), present(task.rejected)
    pair = [row[chosen], row[rejected]]
    if task.prompt is not None:
        before = _asked(task.prompt, row)
    elif isinstance(pair[0], list):
        before = _dialogue(pair[0][:-1]) + ASSISTANT
    else:
        before = _shared(*pair)
        if not before:
            raise UserError(
                f"task.prompt: missing, and in row {number} of {task.name} {chosen} and "
                f"{rejected} do not begin with the same dialogue"
            )
        pair = [text.removeprefix(before) for text in pair]
    return before, pair, [1.0, 0.0]


def _asked(key: str, row: Mapping[str, Any]) -> str:
    return (_dialogue(row[key]) if key in row else columns.text(row, key)).rstrip(" ")


def _last_turn(text: Any) -> str:
    """Return a response: a text unchanged, or the last turn of a conversation; "" without turns."""
    return (columns.turns(text)[-1]["content"] if isinstance(text, list) and text else text) or ""


def _dialogue(turns: Any) -> str:
    """Return a conversation as a text in HH's form, `\\n\\nHuman: …\\n\\nAssistant: …`; a text unchanged."""
    if not isinstance(turns, list):
        return turns or ""
    marks = {"assistant": ASSISTANT}
    return "".join(f"{marks.get(turn['role'], HUMAN)} {turn['content']}" for turn in columns.turns(turns))


def _shared(first: str, other: str) -> str:
    """Return the common beginning of two texts, up to the end of its last "Assistant:"; "" if it has none."""
    same = next(
        (i for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b), min(len(first), len(other))
    )
    cut = first.rfind(ASSISTANT, 0, same)
    return first[: cut + len(ASSISTANT)] if cut >= 0 else ""
