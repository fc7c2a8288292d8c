"""Samples: several completions of each prompt, drawn by one stage and labelled by another."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from encore.data.forms import NUMBER, PREFILL
from encore.data.preferences import Preference
from encore.errors import UserError
from encore.runtime import rows as files
from encore.worlds.protocol import Problem


class Sample(TypedDict):
    """A row: a prompt and its completions."""

    prompt: str
    question: str
    answer: str
    difficulty: int
    completions: list[str]
    tokens: list[int]  # number of tokens of each completion, including the end-of-sequence token
    truncated: list[bool]  # whether each completion was cut before its end-of-sequence token
    prefill: NotRequired[str]  # beginning of the completions, at the end of the prompt
    number: NotRequired[int]  # the number by which the world finds the problem again


FILE = "samples.jsonl"
DRAWN = ("completions", "tokens", "truncated")
COLUMNS = ("prompt", "question", "answer", "difficulty", *DRAWN)


def save(rows: Sequence[Sample], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/samples.jsonl, either completely or not at all.

    The columns prefill and number are written if the rows have them.
    """
    further = [name for name in (PREFILL, NUMBER) if rows and name in rows[0]]
    files.save(rows, (*COLUMNS, *further), folder, FILE)


def load(metrics_json: Path) -> list[Sample]:
    """Return the rows that an upstream stage has saved.

    Raises UserError if they are missing or changed, if the stage has made something else, or if a row lacks a
    column or its `completions`, `tokens` and `truncated` differ in length.
    """
    rows = files.load(metrics_json, FILE, COLUMNS, "samples")
    for number, row in enumerate(rows, start=1):
        if len(counts := {len(row[name]) for name in DRAWN}) > 1 or not row["completions"]:
            raise UserError(
                f"{metrics_json}: samples, row {number}: expected completions, tokens and truncated of one "
                f"length, got {sorted(counts)}"
            )
    return cast(list[Sample], rows)


def problem(row: Mapping[str, Any]) -> Problem:
    """Return the world's problem in a row of samples or of an evaluation."""
    return Problem(
        row["question"], row["answer"], row["difficulty"], row.get(PREFILL, ""), row.get(NUMBER, 0)
    )


def of_preferences(rows: Sequence[Preference]) -> list[Sample]:
    """Return the responses of preferences as samples to label again; `tokens` has numbers of characters."""
    return [
        {
            "prompt": row["prompt"],
            "question": row["question"],
            "answer": row["answer"],
            "difficulty": row["difficulty"],
            "completions": row["responses"],
            "tokens": [len(text) for text in row["responses"]],
            "truncated": row["truncated"],
        }
        for row in rows
    ]


def grouped(problems: Sequence[Mapping[str, Any]], completions: Sequence[Any]) -> list[Sample]:
    """Return samples made of `problems` and their completions, the same number for each problem."""
    size = len(completions) // len(problems)
    rows: list[Sample] = []
    for number, problem in enumerate(problems):
        drawn = completions[number * size : (number + 1) * size]
        row: Sample = {
            "prompt": problem["prompt"],
            "question": problem["question"],
            "answer": problem["answer"],
            "difficulty": problem["difficulty"],
            "completions": [str(text) for text in drawn],
            "tokens": [text.tokens for text in drawn],
            "truncated": [text.truncated for text in drawn],
        }
        if PREFILL in problem:
            row["prefill"] = problem[PREFILL]
        if NUMBER in problem:
            row["number"] = problem[NUMBER]
        rows.append(row)
    return rows
