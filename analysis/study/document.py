"""The file of a study: which log files belong to its runs, and the claims about the runs."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from encore.errors import UserError
from encore.recipe import strict_yaml
from encore.recipe.base import Line, Mistake, Model, Name, Some, below
from encore.recipe.claims import OURS, Claim, Paper, Side, with_ids
from encore.recipe.document import read_content
from encore.recipe.files import of_file

STEP = "step"
DISTANCE = "distance"  # first part of a metric's name: the distance of our curve from the claim's reference


class StudyClaim(Claim):
    """A claim of a study; it counts as our own if it names no source."""

    source: Line = "ours"
    paper: Paper = OURS
    reference: Line | None = None  # the file of a published curve: a CSV with the columns `axis` and value
    axis: Line = STEP  # the step, or a metric of ours that counts samples or compute

    def mistakes(self) -> Iterator[Mistake]:
        """Yield each key that only a recipe may have, and each contradiction with `reference`."""
        for key in ("needs", "scales", "again", "world"):
            if key in self.model_fields_set:
                yield key, "a key of recipes; a study has none"
        of_curve = self.test.metric.startswith(f"{DISTANCE}/")
        if self.reference is not None:
            yield from self._of_curve(of_curve)
        elif of_curve or "axis" in self.model_fields_set:
            yield "reference", "missing; the file of the published curve"

    def _of_curve(self, named: bool) -> Iterator[Mistake]:
        """Yield the mistakes of a claim with `reference`; `named`: whether its metric is a distance."""
        if self.source == OURS:
            yield "source", "missing; where was the curve of reference published?"
        if not named:
            yield "test.metric", f"with reference expected {DISTANCE}/METRIC, got {self.test.metric}"
        if self.test.against is not None:
            yield "test.against", "the curve is compared with reference; remove it"
        if self.test.direction != "equal":
            yield "test.direction", "with reference expected equal: the curve stays within margin of it"


class Logs(Model):
    """Log files of one form, each with one run or with several."""

    # patterns of paths, from the study's folder on: `logs/{arm}-{seed}.csv`; * stands for any text. A file
    # whose pattern has no {arm}, or no {seed}, counts for all of them.
    files: Some[str]
    # for files with several runs: the pattern of a column's name; W&B exports `{arm}-{seed} - {metric}`
    columns: str | None = None
    step: str | None = None  # column of the step; default: the first of the names that trainers use
    # our name for a metric -> its name in the file; default: all metrics, under their names in the file
    metrics: dict[str, str] | None = None


class Study(Model):
    """A study: claims about runs that were made elsewhere, and the log files of these runs."""

    title: Line
    # place, such as `train` or `eval`, -> its log files; claims name ARM/PLACE
    runs: Annotated[dict[Name, Logs], Field(min_length=1)]
    claims: Annotated[dict[Name, StudyClaim], Field(min_length=1), AfterValidator(with_ids)]


def load(path: Path) -> Study:
    """Read the file of a study. Raises UserError with a line for each mistake that names file and key."""
    content = strict_yaml.read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a mapping with title, runs and claims")
    with of_file(path):
        study = read_content(content, Study)
        if lines := [f"{key}: {words}" for key, words in _mistakes(study)]:
            raise UserError("\n".join(lines))
    return study


def mistakes_of(claims: Iterable[StudyClaim]) -> Iterator[Mistake]:
    """Yield the mistakes that claims have in themselves, whatever the runs of their study."""
    for claim in claims:
        yield from below(f"claims.{claim.id}", claim.mistakes())
        yield from below(f"claims.{claim.id}.test", claim.test.mistakes())


def _mistakes(study: Study) -> Iterator[Mistake]:
    """Yield the mistakes of a study's claims, such as places that `runs` lacks."""
    yield from mistakes_of(study.claims.values())
    curves: dict[Side, str] = {}
    for claim in study.claims.values():
        first = curves.setdefault(claim.test.sides[0], claim.id) if claim.reference else claim.id
        if first != claim.id:
            yield f"claims.{claim.id}.test", f"the same curve as of claims.{first}; one reference a curve"
        for key, side in zip(("of", "against"), claim.test.sides, strict=False):
            arm, slash, place = side.place.partition("/")
            if not slash or not arm:
                yield f"claims.{claim.id}.test.{key}", f"expected ARM/PLACE, got {side.place}"
            elif place not in study.runs:
                names = ", ".join(study.runs)
                yield f"claims.{claim.id}.test.{key}", f'runs has no "{place}"; valid: {names}'
