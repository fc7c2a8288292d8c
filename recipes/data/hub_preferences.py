"""Preferences of a Hub dataset: pairs, or ranked lists, of text or of conversations."""

import math
from collections.abc import Mapping
from typing import Any

from recipes.data.hub import dataset as hub_data
from recipes.data.hub import enough_rows
from recipes.data.preferences import Row, by_score, split_of
from recipes.errors import UserError, nearest
from recipes.worlds.text import prompt as put

HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"  # as Anthropic's HH writes a dialogue


def comparisons(
    task: Mapping[str, Any],
    template: str = "{question}",
    validation: float = 0.0,
    problems: int | None = None,
) -> list[Row]:
    """The comparisons of the Hub dataset that `task` names: {hub, revision, split, optionally subset} and

    * chosen, rejected and optionally prompt: columns of text or of conversations, whose last turn is the
      response. Without a prompt column the prompt is the turns before or, of text as in HH, what chosen and
      rejected share up to the last "Assistant:". The chosen response has score 1.
    * prompt, and responses: a column of lists of mappings, with keys named `text` and `rank` (1: the best).
      The score is -rank.

    `template` is put around the prompt, whose spaces at its end are left out: tokenised apart from a reply,
    they would be tokens that no other stage's prompts end with. The first `problems` rows, or all. Raises
    UserError for a column that is missing, for too few rows and for texts that share no dialogue.
    """
    data = hub_data(dict(task), [key for key in ("prompt", "chosen", "rejected", "responses") if key in task])
    enough_rows(task, len(data), problems)
    rows = []
    for number in range(problems or len(data)):
        before, texts, scores = _compared(task, data[number], number)
        prompt = put(template, before)
        rows.append(
            {
                "prompt": prompt,
                "question": before,
                "answer": "",
                "difficulty": 0,
                "responses": [last_turn(text) for text in texts],
                "truncated": [False] * len(texts),
                "scores": scores,
                "ranking": by_score(scores),
                "split": split_of(prompt, validation),
            }
        )
    return rows


def _compared(
    task: Mapping[str, Any], given: Mapping[str, Any], number: int
) -> tuple[str, list, list[float]]:
    """Prompt, responses and scores of a row of a Hub dataset."""
    if "responses" in task:
        listed = given[task["responses"]]
        for key in ("text", "rank"):
            if absent := [one for one in listed if task[key] not in one]:
                known = nearest(task[key], [*absent[0]])
                raise UserError(f"task.{key}: no {task[key]!r} in {task['responses']} of row {number}{known}")
        ranks = [one[task["rank"]] for one in listed]
        scores = [math.nan if rank is None else -float(rank) for rank in ranks]
        return dialogue(given[task["prompt"]]).rstrip(" "), [one[task["text"]] for one in listed], scores
    pair = [given[task["chosen"]], given[task["rejected"]]]
    if "prompt" in task:
        before = dialogue(given[task["prompt"]]).rstrip(" ")
    elif isinstance(pair[0], list):
        before = dialogue(pair[0][:-1]) + ASSISTANT
    else:
        before = shared(*pair)
        if not before:
            raise UserError(
                f"task.prompt: missing, and in row {number} of {task['hub']} {task['chosen']} and "
                f"{task['rejected']} do not begin with the same dialogue"
            )
        pair = [text.removeprefix(before) for text in pair]
    return before, pair, [1.0, 0.0]


def last_turn(text: Any) -> str:
    """A response: text, or the last turn of a conversation; nothing as no text."""
    return (text[-1]["content"] if isinstance(text, list) and text else text) or ""


def dialogue(turns: Any) -> str:
    """Text as it is; a conversation in HH's form, `\\n\\nHuman: …\\n\\nAssistant: …`."""
    if not isinstance(turns, list):
        return turns or ""
    marks = {"assistant": ASSISTANT}
    return "".join(f"{marks.get(turn['role'], HUMAN)} {turn['content'] or ''}" for turn in turns)


def shared(one: str, other: str) -> str:
    """What two texts begin with, up to the end of its last "Assistant:"; nothing where there is none."""
    same = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    cut = one.rfind(ASSISTANT, 0, same)
    return one[: cut + len(ASSISTANT)] if cut >= 0 else ""
