"""A loopback Hub that has what recipes name at the commits that they pin: tiny models, small data sets.

What stands on its shelf follows from hub_models and the shapes of data sets, never from a recipe: a name,
revision, subset, split or column that a recipe has wrong is not there.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import code_datasets
import forked_jobs
import hub_datasets
import hub_models
import reasoning_datasets
import true_tokenizers
from data_set_files import Row, Shape, write
from hub_files import Shelf
from hub_server import Hub, serving

SHAPES = {**hub_datasets.DATASETS, **reasoning_datasets.DATASETS, **code_datasets.DATASETS}
ROWS = 24  # of each file, as many as a batch takes
LENGTHS = {("Anthropic/hh-rlhf", "test"): 2138}  # 8,552 in four files: a recipe takes a slice of them


@contextmanager
def stocked(folder: Path) -> Iterator[Hub]:
    """A Hub whose repositories lie in `folder`; processes that are forked meanwhile read it, uncached."""
    with serving() as hub, forked_jobs.environment(hub.reading(folder / "home")):
        _add_models(hub.shelf, folder / "models")
        _add_data_sets(hub.shelf, folder / "datasets")
        yield hub


def _add_models(shelf: Shelf, folder: Path) -> None:
    for name, revision in hub_models.REVISIONS.items():
        kind = hub_models.kind(name)
        if not (folder / kind).exists():
            true_tokenizers.checkpoint(kind, folder / kind)
        shelf.add("models", name, folder / kind / "final", revision)


def _add_data_sets(shelf: Shelf, folder: Path) -> None:
    for name, shape in SHAPES.items():
        if shape.revision:  # otherwise no recipe names it

            def rows(split: str, name: str = name, shape: Shape = shape) -> list[Row]:
                return _distinct(shape, LENGTHS.get((name, split), ROWS))

            shelf.add("datasets", name, write(name, shape, folder, rows), shape.revision)


def _distinct(shape: Shape, count: int) -> list[Row]:
    return [_marked(shape.rows[i % len(shape.rows)], i) for i in range(count)]


def _marked(row: Mapping[str, Any], number: int) -> Row:
    """The row with a number before each of its prompts' texts, so that none is another's."""
    marked = json.loads(json.dumps(row))
    for key in ("prompt", "problem", "question", "text"):
        if isinstance(marked.get(key), str):
            marked[key] = f"{number}: {marked[key]}"
    for key in ("chosen", "rejected"):
        if isinstance(marked.get(key), str):
            marked[key] = marked[key].replace("Human:", f"Human: {number}", 1)
    return marked
