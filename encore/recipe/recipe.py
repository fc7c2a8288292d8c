"""A recipe: what a paper ran, at each scale and in each arm."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from encore.errors import UserError, nearest
from encore.recipe import document, evals, kinds, likeness
from encore.recipe.claims import Claim
from encore.recipe.document import Document
from encore.recipe.evals import Evals
from encore.recipe.files import Files
from encore.recipe.kinds.stage import Stage
from encore.recipe.layers import Layers


@dataclass(frozen=True)
class Recipe:
    """A recipe; values that follow from its layers are computed once."""

    name: str
    layers: Layers
    files: Files = field(default_factory=lambda: Files(Path(), {}), compare=False)
    _stages: dict[tuple[str, str, str], Stage] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _arms: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _evals: dict[tuple[str, str], Evals] = field(default_factory=dict, init=False, repr=False, compare=False)
    _within: dict[tuple[str, str], dict[str, tuple[str, int]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def document(self) -> Document:
        """The document of the recipe, which has everything except the merged stages and evaluations."""
        return document.read_content(self.layers.content, Document)

    @property
    def scales(self) -> list[str]:
        """The names of the recipe's scales."""
        return list(self.document.scales)

    def require_scale(self, scale: str, where: str) -> None:
        """Raise UserError, with a line that begins with `where`, unless the recipe has the scale."""
        if scale not in self.scales:
            why = self.document.without.get(scale)
            hint = f": {why}" if why else nearest(scale, self.scales)
            raise UserError(f'{where}: recipe {self.name} has no scale "{scale}"{hint}')

    def claims(self, scale: str) -> tuple[Claim, ...]:
        """Return the claims at a scale."""
        return tuple(claim for claim in self.document.claims.values() if claim.is_at(scale))

    def arms(self, scale: str) -> list[str]:
        """Return the arms that exist at a scale, in the recipe's order: the first is the paper's own."""
        if scale not in self._arms:
            arms = self.document.arms.items()
            exist = [name for name, arm in arms if arm.is_at(scale) and not self.layers.lacks(scale, name)]
            self._arms[scale] = exist
        return [*self._arms[scale]]

    def evals(self, scale: str, arm: str) -> Evals:
        """Return the evaluations of an arm at a scale. Raises UserError with all mistakes in their types."""
        key = (scale, arm)
        if key not in self._evals:
            merged = self.layers.merged(scale, arm, "evals")
            self._evals[key] = evals.read_evals(merged, f" (scale {scale}, arm {arm})")
        return self._evals[key]

    def stages(self, scale: str, arm: str) -> list[str]:
        """Return the names of the stages that the arm has at the scale."""
        return list(self.layers.merged(scale, arm, "stages"))

    def stage(self, scale: str, arm: str, name: str) -> Stage:
        """Return a stage as the arm has it at the scale. Raises UserError with all mistakes in its keys."""
        key = (scale, arm, name)
        if key not in self._stages:
            merged = self.layers.merged(scale, arm, "stages")[name]
            self._stages[key] = kinds.read_stage(merged, f"stages.{name}", f" (scale {scale}, arm {arm})")
        return self._stages[key]

    def checkpoints(self, scale: str, arm: str) -> list[str]:
        """Return the names of the checkpoints of the arm that are evaluated at the scale."""
        return list(self.evals(scale, arm).checkpoints)

    def within(self, scale: str, arm: str) -> dict[str, tuple[str, int]]:
        """Return name -> checkpoint and step of each model that is measured while a stage trains.

        `after_step40` is the model of checkpoint `after`, a stage's product, as it was after 40 steps. Such
        stages have the key `evaluate_every`.
        """
        if (scale, arm) not in self._within:
            measured: dict[str, tuple[str, int]] = {}
            checkpoints = self.evals(scale, arm).checkpoints
            for name in self.stages(scale, arm):
                checkpoint = next((key for key, place in checkpoints.items() if place == name), None)
                if checkpoint:
                    marks = self.stage(scale, arm, name).marks
                    measured |= {f"{checkpoint}_step{step}": (checkpoint, step) for step in marks}
            self._within[scale, arm] = measured
        return self._within[scale, arm]

    def evaluations(self, scale: str, arm: str) -> list[str]:
        """Return the names of all evaluations of the arm, also of models measured while stages train."""
        return [*self.checkpoints(scale, arm), *self.within(scale, arm)]

    def sensitivity(self, scale: str, arm: str) -> list[str]:
        """Return the names of the evaluations of `evals.sensitivity`, which only the first arm has."""
        is_first = arm == self.arms(scale)[0]
        return self.evals(scale, arm).sensitivity_evaluations if is_first else []

    @property
    def first_seed(self) -> int:
        """The first judged seed."""
        return self.document.first_seed

    @property
    def dial_seeds(self) -> set[int]:
        """The seeds on which the recipe's dials were chosen, as `dials` list them; none is judged."""
        return {seed for dial in self.document.dials for seed in dial.seeds}

    def selection(
        self, scale: str, report: str, seeds: int | Sequence[int] | None, chosen: Sequence[str] = ()
    ) -> tuple[list[str], list[int]]:
        """Return the arms and seeds of a report; for `quickstart`, those that the recipe names for it.

        `seeds` is a number of seeds, which begin with the recipe's `first_seed`, or a list of seeds; if it is
        None, the recipe sets the number. `chosen` limits the arms, unless it is empty.
        """
        arms, first = [arm for arm in self.arms(scale) if not chosen or arm in chosen], self.first_seed
        count = self._seeds(scale)
        if report == "quickstart":
            quick = self.document.quickstart
            arms = [arm for arm in quick.arms or arms[:1] if arm in arms]
            count = min(quick.seeds or count, count)
        if isinstance(seeds, Sequence):
            return arms, list(seeds)
        return arms, list(range(first, first + (seeds or count)))

    def _seeds(self, scale: str) -> int:
        """Return the number of seeds of the scale, or of a scale that it is `like`, or of the recipe."""
        scales = self.document.scales
        names = likeness.chain({name: at.like for name, at in scales.items()}, scale)
        return next(filter(None, (scales[name].seeds for name in names)), self.document.seeds)
