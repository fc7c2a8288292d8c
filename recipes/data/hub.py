"""Rows of a Hub dataset, at its pinned revision."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recipes.errors import UserError, nearest


def hub_rows(task: dict[str, Any]) -> list[tuple[str, str, int]]:
    """(question, answer, 0) of each row of the Hub dataset that `task` names; see `hub`.

    The answer is "" where the task names no column of answers, as of prompts that nobody verifies.
    """
    data = dataset(task, [key for key in ("question", "answer") if key in task])
    questions = [str(question) for question in data[task["question"]]]
    answers = [str(answer) for answer in data[task["answer"]]] if "answer" in task else [""] * len(questions)
    return [(question, answer, 0) for question, answer in zip(questions, answers, strict=True)]


def enough_rows(task: Mapping[str, Any], available: int, problems: int | None) -> None:
    """Raise UserError where a Hub dataset has fewer rows than are asked for."""
    if problems is not None and problems > available:
        raise UserError(
            f"problems: {problems} asked, but {task['hub']} split {task['split']} has {available}"
        )


def dataset(task: dict[str, Any], keys: Sequence[str]) -> Any:
    """The Hub dataset that `task` names, at its pinned revision; its `keys` name columns of it.

    `task["hub"]` may also be a local folder of the same layout. Raises UserError where it cannot be loaded,
    is empty or lacks a column.
    """
    from datasets import load_dataset

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
