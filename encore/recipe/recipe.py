"""A recipe as data: what a paper ran, at each scale and in each arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from encore.errors import UserError, nearest
from encore.recipe import protocols, sensitivity
from encore.recipe.claims import Claim
from encore.recipe.document import Document
from encore.recipe.files import Files

CHOSEN = "chosen"
REPORTS = (
    "report",
    "quickstart",
    CHOSEN,
)  # of all arms and seeds; of the recipe's quickstart; of chosen ones
DIAL_SEEDS = 1000  # from this seed on dials are chosen; judged seeds are below, so there are no more


@dataclass(frozen=True)
class Recipe:
    name: str
    spec: dict[str, Any]  # must not change: what follows from it is computed once
    files: Files = field(default_factory=lambda: Files(Path(), {}), compare=False)
    _overlaid: dict[tuple[str, str, str], dict] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def document(self) -> Document:
        """What the recipe says beside what its stages and evaluations come to."""
        return Document.model_validate(self.spec)

    def claims(self, scale: str) -> tuple[Claim, ...]:
        """Return the claims that there are at a scale; without any a recipe has its usual number of seeds."""
        return tuple(claim for claim in self.document.claims.values() if claim.is_at(scale))

    def arms(self, scale: str) -> list[str]:
        """The arms that exist at a scale, in the recipe's order: the first is the paper's own."""
        dropped = {arm for arm, own in self._own_arms(scale).items() if own is None}
        arms = self.document.arms.items()
        return [name for name, arm in arms if arm.is_at(scale) and name not in dropped]

    @property
    def scales(self) -> list[str]:
        """The names of the recipe's scales."""
        return list(self.document.scales)

    def require_scale(self, scale: str, where: str) -> None:
        """Raise UserError, a line that begins with `where`, unless the recipe has the scale."""
        if scale not in self.scales:
            why = self.document.without.get(scale)
            hint = f": {why}" if why else nearest(scale, self.scales)
            raise UserError(f'{where}: recipe {self.name} has no scale "{scale}"{hint}')

    def _layers(self, scale: str) -> list[dict[str, Any]]:
        """What the file says of a scale: of the one it is like, and then its own."""
        own = self.spec["scales"][scale]
        return [self.spec["scales"][own["like"]], own] if "like" in own else [own]

    def _own_arms(self, scale: str) -> dict[str, Any]:
        """What the scale says last of each arm; None: it does not exist there."""
        return {arm: own for layer in self._layers(scale) for arm, own in layer.get("arms", {}).items()}

    def overlaid(self, scale: str, arm: str, section: str) -> dict:
        """A section (`stages` or `evals`) as the arm has it at the scale.

        Later ones win: the recipe's own, the scale's, the arm's, what the scale says of the arm; of a scale
        that is like another, the other's before its own. Below all of them is the protocol that an evaluation
        task names.
        """
        key = (scale, arm, section)
        if key not in self._overlaid:
            at = self._layers(scale)
            of_arm = [layer.get("arms", {}).get(arm) or {} for layer in at]
            merged = self.spec[section]
            for layer in (*at, self.spec["arms"][arm], *of_arm):
                merged = merge(merged, layer.get(section, {}))
            if section == "evals" and "tasks" in merged:
                merged["tasks"] = {name: protocols.completed(task) for name, task in merged["tasks"].items()}
            self._overlaid[key] = merged
        return self._overlaid[key]

    def stages(self, scale: str, arm: str) -> list[str]:
        """Names of the stages the arm has at the scale."""
        return list(self.overlaid(scale, arm, "stages"))

    def checkpoints(self, scale: str, arm: str) -> list[str]:
        """Names of the checkpoints the arm has evaluated at the scale."""
        return list(self.overlaid(scale, arm, "evals").get("checkpoints", {}))

    def within(self, scale: str, arm: str) -> dict[str, tuple[str, int]]:
        """name -> checkpoint and step: what is measured within stages that have `evaluate_every`.

        `after_step40` is the model of checkpoint `after`, a stage's product, as it was after 40 steps.
        """
        measured: dict[str, tuple[str, int]] = {}
        checkpoints = self.overlaid(scale, arm, "evals").get("checkpoints", {})
        for name, stage in self.overlaid(scale, arm, "stages").items():
            every, steps = stage.get("evaluate_every"), stage.get("args", {}).get("max_steps", 0)
            checkpoint = next((key for key, place in checkpoints.items() if place == name), None)
            if every and checkpoint:
                marks = range(every, steps, every)
                measured |= {f"{checkpoint}_step{step}": (checkpoint, step) for step in marks}
        return measured

    def evaluations(self, scale: str, arm: str) -> list[str]:
        """Names of all that the arm has evaluated: its checkpoints, and what is measured within stages."""
        return [*self.checkpoints(scale, arm), *self.within(scale, arm)]

    def sensitivity(self, scale: str, arm: str) -> list[str]:
        """Names of the evaluations of `evals.sensitivity`, which are of the scale's first arm alone."""
        evals = self.overlaid(scale, arm, "evals")
        return sensitivity.evaluations(evals) if arm == self.arms(scale)[0] else []

    @property
    def first_seed(self) -> int:
        """The first of the seeds that are judged."""
        return self.document.first_seed

    @property
    def dial_seeds(self) -> set[int]:
        """The seeds on which the recipe's dials were chosen, as its `dials` say: none of them is judged."""
        return {seed for dial in self.document.dials for seed in dial.seeds}

    def selection(
        self, scale: str, report: str, seeds: int | Sequence[int] | None, chosen: Sequence[str] = ()
    ) -> tuple[list[str], list[int]]:
        """Arms and seeds of a report: all of them, or for `quickstart` those the recipe names, no more seeds.

        `seeds`: how many; None: as many as the recipe says. They count from the recipe's `first_seed`. Or
        which they are. `chosen`: the arms in place of all.
        """
        arms, first = [arm for arm in self.arms(scale) if not chosen or arm in chosen], self.first_seed
        count = self.document.seeds
        for layer in self._layers(scale):
            count = layer.get("seeds", count)
        if report == "quickstart":
            quick = self.document.quickstart
            arms = [arm for arm in quick.arms or arms[:1] if arm in arms]
            count = min(quick.seeds or count, count)
        if isinstance(seeds, Sequence):
            return arms, list(seeds)
        return arms, list(range(first, first + (seeds or count)))


def alike(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A file's content with each list of scales that has one which others are like having these as well.

    So a scale that is `like: cpu` has the arms, claims and published numbers of cpu.
    """
    copies: dict[str, list[str]] = {}
    for scale, content in spec["scales"].items():
        if "like" in content:
            copies.setdefault(content["like"], []).append(scale)

    def named(entry: dict[str, Any]) -> dict[str, Any]:
        if "scales" not in entry:
            return entry
        every = [name for scale in entry["scales"] for name in (scale, *copies.get(scale, ()))]
        return {**entry, "scales": list(dict.fromkeys(every))}

    mappings = {
        key: {name: named(entry) for name, entry in spec.get(key, {}).items()} for key in ("claims", "arms")
    }
    return {**spec, **mappings, "published": [named(entry) for entry in spec.get("published", [])]}


def merge(base: dict, over: Mapping) -> dict:
    """`base` with `over` laid on it: dicts merge, everything else replaces, null deletes."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged
