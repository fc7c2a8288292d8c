"""Rows of a Hub dataset, at its pinned revision."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import load_dataset

from recipes.errors import UserError, nearest


def problems(task: dict[str, Any]) -> list[tuple[str, str, int]]:
    """(question, answer, 0) of each row of the Hub dataset that `task` names; see `load`.

    The answer is "" where the task names no column of answers, because nothing verifies them.
    """
    data = load(task, [key for key in ("question", "answer") if key in task])
    questions = [str(question) for question in data[task["question"]]]
    answers = [str(answer) for answer in data[task["answer"]]] if "answer" in task else [""] * len(questions)
    return [(question, answer, 0) for question, answer in zip(questions, answers, strict=True)]


def require_rows(task: Mapping[str, Any], available: int, asked: int | None) -> None:
    """Raise UserError where a Hub dataset has fewer rows than the recipe's `problems` asks for."""
    if asked is not None and asked > available:
        raise UserError(f"problems: {asked} asked, but {task['hub']} split {task['split']} has {available}")


def load(task: dict[str, Any], keys: Sequence[str]) -> Any:
    """The Hub dataset that `task` names, at its pinned revision; `keys` of `task` name columns of it.

    `task["hub"]` may also be a local folder of the same layout. Raises UserError where it cannot be loaded,
    is empty or lacks a column.
    """
    local = Path(task["hub"]).is_dir()
    try:
        data = load_dataset(
            task["hub"],
            task.get("subset"),
            revision=None if local else task["revision"],
            split=task["split"],
        )
    except (OSError, ValueError) as error:
        raise UserError(
            f"task.hub: cannot load {task['hub']}: {str(error).strip().splitlines()[0]}"
        ) from error
    for key in keys:
        if task[key] not in data.column_names:
            raise UserError(
                f"task.{key}: no column {task[key]!r} in {task['hub']}{nearest(task[key], data.column_names)}"
            )
    if not len(data):
        raise UserError(f"task.split: {task['hub']} split {task['split']} is empty")
    return data
