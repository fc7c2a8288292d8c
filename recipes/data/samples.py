"""Samples: several completions of each prompt, drawn by one stage and labelled by another.

A row: prompt, question, answer, difficulty; `completions` (texts), `tokens` (of each, the end-of-sequence
token included) and `truncated` (it never came).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes.errors import UserError
from recipes.runtime import rows as files

FILE = "samples.jsonl"
DRAWN = ("completions", "tokens", "truncated")
COLUMNS = ("prompt", "question", "answer", "difficulty", *DRAWN)

Row = dict[str, Any]


def save(rows: Sequence[Row], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/samples.jsonl, wholly or not at all."""
    files.save(rows, COLUMNS, folder, FILE)


def load(metrics_json: Path) -> list[Row]:
    """The rows that an upstream stage has saved.

    Raises UserError where they are missing or changed, where the stage has made something else, and where a
    row lacks a column or has as many completions as it has not tokens.
    """
    rows = files.load(metrics_json, FILE, COLUMNS, "samples")
    for number, row in enumerate(rows, start=1):
        if len(counts := {len(row[name]) for name in DRAWN}) > 1 or not row["completions"]:
            raise UserError(
                f"{metrics_json}: samples, row {number}: expected completions, tokens and truncated of one "
                f"length, got {sorted(counts)}"
            )
    return rows


def of_preferences(rows: Sequence[Row]) -> list[Row]:
    """The responses of preferences as samples, to be labelled once more; `tokens` are then characters."""
    return [
        {key: row[key] for key in ("prompt", "question", "answer", "difficulty", "truncated")}
        | {"completions": row["responses"], "tokens": [len(text) for text in row["responses"]]}
        for row in rows
    ]


def grouped(problems: Sequence[Row], completions: Sequence[Any]) -> list[Row]:
    """Rows of `problems` with their `completions`: as many of each, one problem's after another's."""
    size = len(completions) // len(problems)
    rows = []
    for number, problem in enumerate(problems):
        drawn = completions[number * size : (number + 1) * size]
        rows.append(
            {key: problem[key] for key in ("prompt", "question", "answer", "difficulty")}
            | {
                "completions": [str(text) for text in drawn],
                "tokens": [text.tokens for text in drawn],
                "truncated": [text.truncated for text in drawn],
            }
        )
    return rows
