"""What a report is about, and the artefacts it is made from."""

import json
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

SHOWN = "shown.json"  # in a record: section -> what the page shows of it beside tables


Row = dict[str, Any]  # an object of a JSON file that a job wrote


@dataclass(frozen=True)
class Run:
    """A recipe at a scale, some of its arms and seeds, and the folder that its artefacts lie in."""

    graph: Graph
    name: str
    scale: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    root: Path = Path(".")
    by_looks: Mapping[str, int] | None = None  # with seeds=auto: arm -> how many of the seeds it has
    record: Path | None = None  # the record that it is read from, in place of artefacts
    file: Path | None = None  # of a recipe that lies elsewhere than in recipes/

    @property
    def recipe(self) -> Recipe:
        return self.graph.recipes[self.name]

    @property
    def recipe_files(self) -> dict[str, Path]:
        """The name that a page shows -> the path, of each file of the recipe."""
        return {self.file.as_posix(): self.file} if self.file else self.recipe.files.shown

    @property
    def document(self) -> Document:
        """The document of the recipe: all but its stages and evaluations."""
        return self.recipe.document

    @property
    def stopped(self) -> dict[str, int]:
        """arm -> its number of seeds, of the arms that a look stopped: all that needs them was decided."""
        return {arm: n for arm, n in (self.by_looks or {}).items() if n < len(self.seeds)}

    def seeds_of(self, arm: str) -> tuple[int, ...]:
        return self.seeds[: self.stopped.get(arm)]

    def nodes(self, arm: str, seed: int) -> list[Node]:
        """The nodes that own what one arm and seed is made of, upstream first; none of a seed it has not.

        Another arm's stage is left out where this arm has a stage of that name itself.
        """
        if seed not in self.seeds_of(arm):
            return []
        nodes = self.graph.grid(self.name, self.scale, [arm], [seed])
        stages = self.recipe.stages(self.scale, arm)
        places = [Node(self.name, self.scale, arm, seed, name, "stage") for name in stages]
        own = {self.graph.owner(place) for place in places}
        taken = {self.label(node) for node in own}
        return [n for n in nodes if n.kind == "eval" or n in own or self.label(n) not in taken]

    def all_nodes(self) -> list[Node]:
        """Every distinct node of the run, upstream first: what was really computed."""
        return list(self._nodes)

    @cached_property
    def _nodes(self) -> dict[Node, None]:
        seeds = {arm: self.seeds_of(arm) for arm in self.arms}
        return dict.fromkeys(self.graph.ragged(self.name, self.scale, seeds))

    def label(self, node: Node) -> str:
        return node.name if node.recipe == self.name else f"{node.recipe}/{node.name}"

    def stage(self, arm: str, seed: int, label: str) -> Node:
        """The stage that label() calls so."""
        recipe, _, name = label.rpartition("/")
        return Node(recipe or self.name, self.scale, arm, seed, name, "stage")

    def artefact(self, path: str) -> Path:
        """Where a file of a job lies; of a run that is read from a record, where none lies."""
        return (self.record or self.root) / path

    def kept(self, name: str, made: Callable[[], pd.DataFrame], text: bool = False) -> pd.DataFrame:
        """The table of this name that the record keeps, else the table that `made` makes.

        text: all cells are text.
        """
        path = self.record / f"{name}.csv" if self.record else None
        if path is None or not path.exists():
            return made()
        return pd.read_csv(path, dtype=str, keep_default_na=False) if text else pd.read_csv(path)

    def samples_kept(self, section: str) -> Row:
        """Return the values that the record keeps of a section; empty if the run is of no record."""
        kept = read_json(self.record / SHOWN) if self.record else None
        return (kept or {}).get(section, {})

    def folder(self, node: Node) -> Path:
        return self.artefact(node.folder)

    def sentinel(self, node: Node) -> Path:
        return self.artefact(node.sentinel)

    def evaluation(self, arm: str, checkpoint: str, seed: int | None = None) -> Node:
        """The evaluation of an arm's checkpoint, which another arm may own; default: of the first seed."""
        seed = self.seeds[0] if seed is None else seed
        return Node(self.name, self.scale, arm, seed, checkpoint, "eval")

    def models(self, arm: str, checkpoint: str, seeds: Iterable[int]) -> int:
        """How many models, each trained by itself, an arm's checkpoint is with these seeds."""
        evaluations = {self.graph.owner(self.evaluation(arm, checkpoint, seed)) for seed in seeds}
        return len({self.graph.inputs(evaluation).get("model") for evaluation in evaluations})

    def stages(self, arm: str, seed: int, *kinds: str) -> list[Node]:
        """Those of nodes() that are stages of these kinds (default: of any)."""
        stages = [node for node in self.nodes(arm, seed) if node.kind == "stage"]
        return [node for node in stages if not kinds or self.graph.stage(node).run in kinds]

    def samples(self, evaluation: Node) -> Iterator[Row]:
        """The completions that an evaluation kept, a row an item; none where it has not run for this."""
        if evaluation not in self._nodes:
            return iter(())
        return read_lines(self.folder(evaluation) / f"{evaluation.name}.samples.jsonl")

    def checkpoints(self, arm: str) -> list[str]:
        """The evaluated checkpoints of an arm: the first is taken as before training, the last as after."""
        return self.recipe.checkpoints(self.scale, arm)

    @property
    def ends(self) -> list[str]:
        """The first arm's checkpoints before and after; fewer than two where fewer are evaluated."""
        names = self.checkpoints(self.arms[0])
        return names[:1] + names[1:][-1:]


def read_json(path: Path) -> Row | None:
    """The object in a JSON file; None where there is no file; UserError where it is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: not valid JSON ({error.msg}); delete it and run again") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: expected a JSON object; delete it and run again")
    return found


def read_rows(path: Path, numbers: Sequence[str]) -> pd.DataFrame:
    """The rows of a CSV file. Raises UserError where one of the columns `numbers` lacks a number in a row."""
    try:
        rows = pd.read_csv(path)
        missing = rows[list(numbers)].astype(float).isna().any(axis=None)
    except (ValueError, KeyError) as error:  # pandas' own errors of a file that is none are ValueErrors
        raise UserError(
            f"{path}: not as its stage wrote it ({first_line(error)}); run its stage again"
        ) from None
    if missing:
        raise UserError(f"{path}: not as its stage wrote it (a row is cut short); run its stage again")
    return rows


def read_lines(path: Path) -> Iterator[Row]:
    """The rows of a JSONL file; none where there is no file.

    A last row without its end is left out: a stage may be writing it. UserError where another is no object.
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
