"""Demonstrations: prompts with completions to imitate, made by one stage and learnt from by another."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes import rows as files

FILE = "data.jsonl"
COLUMNS = ("prompt", "completion", "question", "answer", "difficulty")


def save(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/data.jsonl, wholly or not at all."""
    files.save(rows, COLUMNS, folder, FILE)


def load(metrics_json: Path) -> list[dict[str, Any]]:
    """The rows that an upstream stage has saved.

    Raises UserError where they are missing or changed, or where the stage has made something else.
    """
    return files.load(metrics_json, FILE, COLUMNS, "data")
