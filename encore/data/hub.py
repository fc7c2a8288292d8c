"""Rows of a data set that a `task` names: of the Hub, at its pinned revision, or a user's file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import load_dataset, load_dataset_builder
from datasets.exceptions import DatasetGenerationError
from datasets.packaged_modules.cache.cache import Cache
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import RemoteEntryNotFoundError

from encore.data import columns
from encore.errors import UserError, first_line, nearest
from encore.recipe.base import present
from encore.recipe.task import SLICE, DataSet, Questions
from encore.runtime import hub_errors
from encore.runtime.digests import of_file
from encore.worlds.expressions import reach
from encore.worlds.final_answer import reference

FORMATS = {".jsonl": "json", ".parquet": "parquet"}  # the suffix of a file -> its builder in `datasets`


def problems(task: Questions, most: int | None = None) -> list[tuple[str, str, int]]:
    """Return (question, answer, difficulty 0) of the first `most` rows, or all, of the data set of `task`.

    For verifier math the answer is the final answer in the column's text. For countdown it is an expression
    that makes the row's target from the row's numbers. The answer is "" if the row has none, or if the task
    names no column of answers, in which case nothing verifies it. Raises UserError as `load` does, and if no
    expression makes a target.
    """
    columns_of = ("question", "answer", "numbers", "target")
    named = [key for key in columns_of if getattr(task, key) is not None]
    data = load(task, named)
    rows = data.select(range(min(most, len(data)))) if most else data
    return [(columns.text(row, task.question), _answer(task, row, i), 0) for i, row in enumerate(rows)]


def questions(task: Questions) -> list[str]:
    """Return the question of each row of the data set that `task` names."""
    return [columns.text(row, task.question) for row in load(task, ["question"])]


def _answer(task: Questions, row: Mapping[str, Any], number: int) -> str:
    if task.verifier == "countdown":
        numbers, target = row[present(task.numbers)], row[present(task.target)]
        if not isinstance(numbers, list) or not all(isinstance(value, int) for value in [*numbers, target]):
            raise UserError(f"task.numbers: row {number} of {task.name}: expected whole numbers in a list")
        if work := reach(numbers, target):
            return work.expression
        raise UserError(f"task.target: row {number} of {task.name}: nothing makes {target} of {numbers}")
    text = "" if task.answer is None else columns.text(row, task.answer)
    return reference(text) if task.verifier == "math" else text


def require_rows(task: DataSet, available: int, asked: int | None) -> None:
    """Raise UserError if a data set has fewer rows than the recipe's `problems` asks for."""
    if asked is not None and asked > available:
        raise UserError(f"problems: {asked} asked, but {task.name} has {available}")


def load(task: DataSet, keys: Sequence[str]) -> Any:
    """Return the data set that `task` names; `keys` are keys of `task` that name columns (columns.py).

    `task.hub` may also be a local folder of the same layout. Raises UserError if the data set cannot be
    loaded, is empty, or lacks a column or the rows of a slice.
    """
    data = _of_hub(task) if task.file is None else _of_file(task, Path(task.file))
    wanted = {key: columns.names(getattr(task, key)) for key in keys}
    if any({*named} - {*data.column_names} for named in wanted.values()):
        data = data.flatten()  # turns the fields of a column into columns
    for key, named in wanted.items():
        for column in named:
            if column not in data.column_names:
                known = nearest(column, data.column_names)
                raise UserError(f"task.{key}: no column {column!r} in {task.name}{known}")
    if not len(data):
        raise UserError(f"task.{'file' if task.file else 'split'}: {task.name} is empty")
    return data


def _of_hub(task: DataSet) -> Any:
    name = present(task.hub)
    failing = f"task.hub: cannot load {name}"
    builder = _local(task, failing) if Path(name).is_dir() else _at_revision(task, failing)
    try:
        data = builder.as_dataset(split=task.split)
    except (OSError, ValueError) as error:
        raise UserError(f"{failing}: {first_line(error)}") from error
    for split, *ends in SLICE.findall(present(task.split)):
        available = builder.info.splits[split].num_examples
        asked = max(abs(int(end or 0)) for end in ends)
        if asked > available:  # `datasets` would silently return fewer rows
            raise UserError(f"task.split: {task.name}: {asked} rows asked, but {split} has {available}")
    return data


def _local(task: DataSet, failing: str) -> Any:
    """Return the prepared builder of a local folder. A UserError's message begins with `failing`."""
    try:
        builder = load_dataset_builder(present(task.hub), task.subset)
        builder.download_and_prepare()
        return builder
    except (OSError, ValueError, DatasetGenerationError) as error:
        raise UserError(f"{failing}: {first_line(error.__cause__ or error)}") from error


def _at_revision(task: DataSet, failing: str) -> Any:
    """Return the builder of the rows at the task's revision, from the cache if the Hub does not answer.

    Raises UserError, with a message that begins with `failing`, if the revision is neither in the cache nor
    downloadable.
    """
    name, revision = present(task.hub), task.revision
    try:
        builder = load_dataset_builder(name, task.subset, revision=revision)
        if builder.hash != revision:  # without the Hub, `datasets` takes the newest revision of its cache
            config = task.subset or builder.config.name
            short = name.rpartition("/")[2]
            builder = Cache(
                repo_id=name, dataset_name=short, config_name=config, version="0.0.0", hash=revision
            )
        builder.download_and_prepare()
        return builder
    except (*hub_errors.ERRORS, DatasetGenerationError) as error:
        arguments = ", ".join(repr(argument) for argument in (name, task.subset) if argument)
        fetch = f"from datasets import load_dataset; load_dataset({arguments}, revision={revision!r})"
        wanted = hub_errors.Wanted("data set", name, revision, f'python -c "{fetch}"')
        raise UserError(f"{failing}: {hub_errors.explain(_first_cause(error, wanted), wanted)}") from error


def _first_cause(error: Exception, wanted: hub_errors.Wanted) -> Exception:
    """Return the Hub's error that `datasets` hid behind `error`, by asking again; `error` if none comes."""
    if hub_errors.is_of_hub(error):
        return error
    try:
        HfApi().dataset_info(wanted.name, revision=wanted.revision)
        hf_hub_download(wanted.name, "README.md", repo_type="dataset", revision=wanted.revision)
    except RemoteEntryNotFoundError:
        return error  # a data set needs no README.md
    except hub_errors.ERRORS as cause:
        return cause
    return error


def _of_file(task: DataSet, path: Path) -> Any:
    try:
        content = of_file(path)
        if task.sha256 not in (None, content):
            raise UserError(f"task.file: {path} has changed since this job was planned; start it again")
        if not path.stat().st_size:
            raise UserError(f"task.file: {path} is empty")
        # The name is part of the place where `datasets` keeps the rows. Without it the place depends on path
        # and time of change alone, so that another file with both would get these rows.
        return load_dataset(FORMATS[path.suffix], content, data_files=str(path), split="train")
    except (OSError, ValueError, DatasetGenerationError) as error:
        raise UserError(f"task.file: cannot read {path}: {first_line(error.__cause__ or error)}") from error
