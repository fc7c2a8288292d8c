"""Rows of a data set that a `task` names: of the Hub, at its pinned revision, or a file of one's own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import load_dataset
from datasets.exceptions import DatasetGenerationError

from encore.data import columns
from encore.errors import UserError, first_line, nearest
from encore.recipe.base import present
from encore.recipe.task import DataSet, Questions
from encore.runtime.digests import of_file
from encore.worlds.expressions import reach
from encore.worlds.final_answer import reference

FORMATS = {".jsonl": "json", ".parquet": "parquet"}  # the end of a file's name -> its builder in `datasets`


def problems(task: Questions, most: int | None = None) -> list[tuple[str, str, int]]:
    """(question, answer, 0) of the rows of the data set that `task` names, of the first `most` or of all.

    For verifier math the answer is the final one of the column's text; for countdown an expression that makes
    the row's target of its numbers. It is "" where the task names no column of answers, because nothing
    verifies them, and where the row has none. Raises UserError as `load`, and where no expression makes a
    target.
    """
    columns_of = ("question", "answer", "numbers", "target")
    named = [key for key in columns_of if getattr(task, key) is not None]
    data = load(task, named)
    rows = data.select(range(min(most, len(data)))) if most else data
    return [(columns.text(row, task.question), _answer(task, row, i), 0) for i, row in enumerate(rows)]


def questions(task: Questions) -> list[str]:
    """The question of each row of the data set that `task` names."""
    return [columns.text(row, task.question) for row in load(task, ["question"])]


def _answer(task: Questions, row: Mapping[str, Any], number: int) -> str:
    if task.verifier == "countdown":
        numbers, target = row[present(task.numbers)], row[present(task.target)]
        if not isinstance(numbers, list) or not all(isinstance(one, int) for one in [*numbers, target]):
            raise UserError(f"task.numbers: row {number} of {task.name}: expected whole numbers in a list")
        if work := reach(numbers, target):
            return work.expression
        raise UserError(f"task.target: row {number} of {task.name}: nothing makes {target} of {numbers}")
    text = "" if task.answer is None else columns.text(row, task.answer)
    return reference(text) if task.verifier == "math" else text


def require_rows(task: DataSet, available: int, asked: int | None) -> None:
    """Raise UserError where a data set has fewer rows than the recipe's `problems` asks for."""
    if asked is not None and asked > available:
        raise UserError(f"problems: {asked} asked, but {task.name} has {available}")


def load(task: DataSet, keys: Sequence[str]) -> Any:
    """The data set that `task` names; `keys` of `task` name columns of it, as `columns` reads them.

    `task.hub` may also be a local folder of the same layout. Raises UserError where it cannot be loaded,
    is empty or lacks a column.
    """
    data = _of_hub(task) if task.file is None else _of_file(task, Path(task.file))
    wanted = {key: columns.names(getattr(task, key)) for key in keys}
    if any({*named} - {*data.column_names} for named in wanted.values()):
        data = data.flatten()  # a field of a column is then a column
    for key, named in wanted.items():
        for column in named:
            if column not in data.column_names:
                known = nearest(column, data.column_names)
                raise UserError(f"task.{key}: no column {column!r} in {task.name}{known}")
    if not len(data):
        raise UserError(f"task.{'file' if task.file else 'split'}: {task.name} is empty")
    return data


def _of_hub(task: DataSet) -> Any:
    local = Path(present(task.hub)).is_dir()
    try:
        return load_dataset(
            present(task.hub), task.subset, revision=None if local else task.revision, split=task.split
        )
    except (OSError, ValueError) as error:
        raise UserError(
            f"task.hub: cannot load {task.hub}: {first_line(error.__cause__ or error)}"
        ) from error


def _of_file(task: DataSet, path: Path) -> Any:
    try:
        content = of_file(path)
        if task.sha256 not in (None, content):
            raise UserError(f"task.file: {path} has changed since this job was planned; start it again")
        if not path.stat().st_size:
            raise UserError(f"task.file: {path} is empty")
        # the name is part of where `datasets` keeps what it has read: it goes by path and time of change
        # alone, and would give the rows of another file that had both
        return load_dataset(FORMATS[path.suffix], content, data_files=str(path), split="train")
    except (OSError, ValueError, DatasetGenerationError) as error:
        raise UserError(f"task.file: cannot read {path}: {first_line(error.__cause__ or error)}") from error
