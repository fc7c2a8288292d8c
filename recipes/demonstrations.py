"""Demonstrations: prompts with completions to imitate, made by one stage and learnt from by another."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes.errors import UserError
from recipes.stages import sentinel
from recipes.stages.disk import saving

FILE = "data.jsonl"
COLUMNS = ("prompt", "completion", "question", "answer", "difficulty")


def save(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/data.jsonl, wholly or not at all."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    lines = [json.dumps({name: row[name] for name in COLUMNS}) + "\n" for row in rows]
    with saving("the data", folder.parent):
        sentinel.write(partial / FILE, "".join(lines))
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def load(metrics_json: Path) -> list[dict[str, Any]]:
    """The rows that an upstream stage has saved.

    Raises UserError where they are missing or changed, or where the stage has made something else.
    """
    folder, _ = sentinel.product(metrics_json)
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(f"{metrics_json}: its stage has made no data: there is no {folder / FILE}") from None
    return [json.loads(line) for line in lines]
