"""A run, which a report is about, and the reading of the files that its jobs wrote."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from encore.errors import UserError, first_line
from encore.recipe.document import Document
from encore.recipe.graph import Graph, Node
from encore.recipe.recipe import Recipe

SHOWN = "shown.json.gz"  # file of a record: section -> values that its page shows and no table has


Row = dict[str, Any]  # an object of a JSON file that a job wrote


@dataclass(frozen=True)
class Run:
    """A recipe at a scale with some of its arms and seeds, and the folder with the files of its jobs."""

    graph: Graph
    name: str
    scale: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    root: Path = Path(".")
    by_looks: Mapping[str, int] | None = None  # with seeds=auto: arm -> its number of seeds
    record: Path | None = None  # the record that the run is read from, instead of artefacts
    file: Path | None = None  # file of a recipe that is not in recipes/

    @property
    def recipe(self) -> Recipe:
        return self.graph.recipes[self.name]

    @property
    def recipe_files(self) -> dict[str, Path]:
        """The files of the recipe: name on the page -> path."""
        return {self.file.as_posix(): self.file} if self.file else self.recipe.files.shown

    @property
    def document(self) -> Document:
        """The document of the recipe: everything in its file except stages and evaluations."""
        return self.recipe.document

    @property
    def stopped(self) -> dict[str, int]:
        """The arms that a look stopped, because all claims on them were decided -> their number of seeds."""
        return {arm: n for arm, n in (self.by_looks or {}).items() if n < len(self.seeds)}

    def seeds_of(self, arm: str) -> tuple[int, ...]:
        return self.seeds[: self.stopped.get(arm)]

    def nodes(self, arm: str, seed: int) -> list[Node]:
        """Return the nodes that own the stages and evaluations of one arm and seed, upstream first.

        The result is [] if the arm lacks the seed. A stage of another arm is left out if this arm has a stage
        of the same name.
        """
        if seed not in self.seeds_of(arm):
            return []
        nodes = self.graph.grid(self.name, self.scale, [arm], [seed])
        stages = self.recipe.stages(self.scale, arm)
        places = [Node(self.name, self.scale, arm, seed, name, "stage") for name in stages]
        owners = {self.graph.owner(place) for place in places}
        taken = {self.label(node) for node in owners}
        return [n for n in nodes if n.kind == "eval" or n in owners or self.label(n) not in taken]

    def all_nodes(self) -> list[Node]:
        """Return all distinct nodes of the run, upstream first; each node is a job."""
        return list(self._nodes)

    @cached_property
    def _nodes(self) -> dict[Node, None]:
        seeds = {arm: self.seeds_of(arm) for arm in self.arms}
        return dict.fromkeys(self.graph.ragged(self.name, self.scale, seeds))

    def label(self, node: Node) -> str:
        return node.name if node.recipe == self.name else f"{node.recipe}/{node.name}"

    def stage(self, arm: str, seed: int, label: str) -> Node:
        """Return the stage of an arm that has this label: `stage`, or `recipe/stage` of another recipe."""
        recipe, _, name = label.rpartition("/")
        return Node(recipe or self.name, self.scale, arm, seed, name, "stage")

    def artefact(self, path: str) -> Path:
        """Return the path of a job's file; if the run is read from a record, no file exists there."""
        return (self.record or self.root) / path

    def kept(self, name: str, made: Callable[[], pd.DataFrame], text: bool = False) -> pd.DataFrame:
        """Return the table `name` from the run's record; if there is none, the table that made() returns.

        text: whether to read all cells of a record's table as text.
        """
        path = self.record / f"{name}.csv" if self.record else None
        if path is None or not path.exists():
            return made()
        return pd.read_csv(path, dtype=str, keep_default_na=False) if text else pd.read_csv(path)

    def samples_kept(self, section: str) -> Row:
        """Return the values of a section in the record's file SHOWN; {} if the run has no record."""
        kept = read_json(self.record / SHOWN) if self.record else None
        return (kept or {}).get(section, {})

    def folder(self, node: Node) -> Path:
        return self.artefact(node.folder)

    def sentinel(self, node: Node) -> Path:
        return self.artefact(node.sentinel)

    def evaluation(self, arm: str, checkpoint: str, seed: int | None = None) -> Node:
        """Return the evaluation of an arm's checkpoint; its owner may be another arm's evaluation.

        `seed` is by default the run's first seed.
        """
        seed = self.seeds[0] if seed is None else seed
        return Node(self.name, self.scale, arm, seed, checkpoint, "eval")

    def models(self, arm: str, checkpoint: str, seeds: Iterable[int]) -> int:
        """Return the number of different models that an arm's checkpoint has over these seeds."""
        evaluations = {self.graph.owner(self.evaluation(arm, checkpoint, seed)) for seed in seeds}
        return len({self.graph.maker(evaluation) for evaluation in evaluations})

    def stages(self, arm: str, seed: int, *kinds: str) -> list[Node]:
        """Return the nodes() that are stages of these kinds; by default, stages of any kind."""
        stages = [node for node in self.nodes(arm, seed) if node.kind == "stage"]
        return [node for node in stages if not kinds or self.graph.stage(node).run in kinds]

    def samples(self, evaluation: Node) -> Iterator[Row]:
        """Yield a row for each problem of an evaluation, with its sampled completions.

        It yields nothing if the evaluation has not run or is not part of the run.
        """
        if evaluation not in self._nodes:
            return iter(())
        return read_lines(self.folder(evaluation) / f"{evaluation.name}.samples.jsonl")

    def checkpoints(self, arm: str) -> list[str]:
        """Return an arm's evaluated checkpoints by name; the first is before training, the last after it."""
        return self.recipe.checkpoints(self.scale, arm)

    @property
    def ends(self) -> list[str]:
        """The first arm's checkpoints before and after training; fewer than two if fewer are evaluated."""
        names = self.checkpoints(self.arms[0])
        return names[:1] + names[1:][-1:]


def read_json(path: Path) -> Row | None:
    """Return the object in a JSON file, which may be gzipped (.gz); None if there is no file.

    Raises UserError for other content.
    """
    try:
        kept = path.read_bytes()
        text = gzip.decompress(kept) if path.suffix == ".gz" else kept
        content = json.loads(text.decode(errors="replace"))
    except FileNotFoundError:
        return None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UserError(f"{path}: not a whole gzip file; delete it and run again") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: not valid JSON ({error.msg}); delete it and run again") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a JSON object; delete it and run again")
    return content


def read_rows(path: Path, numbers: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a CSV file that a stage wrote.

    Raises UserError if the file is no CSV, or if a row lacks a number in one of the columns `numbers`.
    """
    try:
        rows = pd.read_csv(path)
        missing = rows[list(numbers)].astype(float).isna().any(axis=None)
    except (ValueError, KeyError) as error:  # pandas raises ValueErrors for a file that is not a CSV
        raise UserError(
            f"{path}: not as its stage wrote it ({first_line(error)}); run its stage again"
        ) from None
    if missing:
        raise UserError(f"{path}: not as its stage wrote it (a row is cut short); run its stage again")
    return rows


def read_lines(path: Path) -> Iterator[Row]:
    """Yield the object in each line of a JSONL file; nothing if there is no file.

    An incomplete last line is left out, because a stage may be writing it. Raises UserError if any other line
    is not an object.
    """
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if isinstance(row, dict):
                yield row
            elif line.endswith("\n"):
                raise UserError(f"{path}: line {number}: expected a JSON object; delete it and run again")
