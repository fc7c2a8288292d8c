"""Checks before a stage samples and scores: its rewards must tell a right completion from nonsense."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from encore import own_code
from encore.runtime import health
from encore.worlds.final_answer import reference

Reward = Callable[..., Sequence[float | None]]
Row = Mapping[str, Any]  # the columns of a prompt

GARBAGE = ("", " ", "\0", "asdf", "<answer></answer>", "</answer><answer>", "<think>" * 3)
CHECKED = 64  # number of problems whose gold answer is scored
ALIKE = 0.05  # largest share of neighbours whose answers may mean the same


def before_sampling(
    form: Any,
    policy: Path | None,
    tokenizer: Any,
    rows: Sequence[Row],
    rewards: Mapping[str, Reward],
    answer_suffices: bool,
) -> list[health.Check]:
    """Return the checks of the prompts, rewards and template of a stage that samples and scores.

    `form` is the stage's `template` or `chat`. `policy` is the metrics.json of the stage it starts from.
    `rows` are rows of encore.data.prompts. `rewards` include accuracy if answers can be verified;
    `answer_suffices` says whether a completion is then right that states the answer alone.
    """
    for name in filter(own_code.is_own, rewards):  # calling the user's rewards checks their contract
        score(rewards[name], [rows[0]] * len(GARBAGE), [*GARBAGE])
    strict = {name: rewards[name] for name in ("accuracy", "format") if name in rewards}
    return [
        health.known_tokens(tokenizer, [row["prompt"] for row in rows], "prompt"),
        *([gold(rewards["accuracy"], rows)] if "accuracy" in rewards and answer_suffices else []),
        garbage(strict, rows),
        health.same_template(form, policy),
    ]


def gold(reward: Reward, rows: Sequence[Row]) -> health.Check:
    """Check that the accuracy reward of a completion that states the gold answer is 1.

    A reference solution is represented by its last boxed answer or last `####`, because it may have several.
    A world's problem with a number may have no gold answer, because many answers are right.
    """
    rows = [row for row in rows[:CHECKED] if row["answer"] or not row.get("number")]
    completions = [_stated(reference(row["answer"]), row.get("prefill", "")) for row in rows]
    scores = score(reward, rows, completions) if rows else []
    wrong = next((i for i, value in enumerate(scores) if value != 1.0), None)
    message = f"{len(rows)} gold answers score 1"
    if wrong is not None:
        row = rows[wrong]
        message = f"the gold answer {row['answer']!r} of {row['question']!r} scores {scores[wrong]}, not 1"
    share = sum(value == 1.0 for value in scores) / max(len(scores), 1)
    return health.make_check("gold", wrong is None, share if rows else 1.0, 1.0, message, "error")


def crossed(reward: Reward, rows: Sequence[Row]) -> health.Check:
    """Check that the accuracy reward of a completion that states the next row's different gold answer is 0.

    Few exceptions are allowed: two answers may be written differently and mean the same.
    """
    rows = rows[:CHECKED]
    texts = [reference(row["answer"]) for row in rows]
    others = [i for i, text in enumerate(texts) if text != texts[i - 1]]
    stated = [_stated(texts[i - 1], rows[i].get("prefill", "")) for i in others]
    scores = score(reward, [rows[i] for i in others], stated) if others else []
    paid = [i for i, value in zip(others, scores, strict=True) if value]
    share = len(paid) / max(len(others), 1)
    message = f"{len(others) - len(paid)} of {len(others)} gold answers of another question score 0"
    if paid:
        row = rows[paid[0]]
        message += (
            f"; {texts[paid[0] - 1]!r} is paid for {row['question']!r}, whose answer is {row['answer']!r}"
        )
    severity: health.Severity = "error" if share > ALIKE else "warning"
    return health.make_check("gold_of_next", not paid, share, ALIKE, message, severity)


def _stated(answer: str, prefill: str) -> str:
    """Return a completion that states `answer` and continues the prefill at the end of the prompt."""
    whole = f"<think>{answer}</think><answer>{answer}</answer>"
    _, tag, rest = whole.partition(prefill.strip() or "<think>")
    return rest if prefill and tag else whole


def garbage(rewards: Mapping[str, Reward], rows: Sequence[Row]) -> health.Check:
    """Check that empty and meaningless completions get no reward."""
    worst, where = 0.0, ""
    for name, reward in rewards.items():
        for text in GARBAGE:
            value = max(v or 0.0 for v in score(reward, rows[:4], [text] * len(rows[:4])))
            if value > worst:
                worst, where = value, f"{name} gives {value:g} to the completion {text!r}"
    return health.make_check(
        "garbage", worst == 0, worst, 0.0, where or "empty and garbage completions score 0", "error"
    )


def score(
    reward: Reward,
    rows: Sequence[Row],
    completions: Sequence[str],
    ids: Sequence[Sequence[int]] | None = None,
    **options: Any,
) -> Sequence[float | None]:
    """Call a reward function as TRL does, with keyword arguments and one list for each column.

    `ids` are the tokens of the completions; `options` are further arguments, such as `log_metric`.
    """
    columns = {key: [row[key] for row in rows] for key in rows[0] if key != "prompt"}
    prompts = [row["prompt"] for row in rows]
    tokens = [[0]] * len(rows) if ids is None else ids
    return reward(prompts=prompts, completions=completions, completion_ids=tokens, **(columns | options))
