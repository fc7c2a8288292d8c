"""The types of what a recipe says, except of its stages and evaluations, which differ by arm and scale."""

import copy
from collections.abc import Iterator, Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, ValidationError, WithJsonSchema

from encore.errors import UserError, known
from encore.recipe import likeness
from encore.recipe.base import (
    SOME_TEXT,
    Identifier,
    Items,
    Line,
    Mistake,
    Model,
    Name,
    Positive,
    Seed,
    Some,
    below,
)
from encore.recipe.claims import (
    FRONTIER,
    Claim,
    Comparison,
    Dial,
    Gate,
    Published,
    Scaled,
    frontier,
    with_ids,
)
from encore.recipe.expected import Expected
from encore.recipe.looks import FOLDER, LOOKS
from encore.recipe.mistakes import lines, mistaken_places, remove
from encore.recipe.strict_yaml import Content

CHOSEN = "chosen"
# reports of all arms and seeds, of the recipe's quickstart, and of chosen arms
REPORTS = ("report", "quickstart", CHOSEN)
# names that no arm, and the name that no stage, may have: folders in results/ or places have them
NO_ARMS, NO_STAGE = (*REPORTS, FOLDER, FRONTIER), "evals"
DIAL_SEEDS = 1000  # first seed on which dials are chosen; judged seeds are below it
MOST_TRIES = 5  # rounds of removing invalid parts: a removal can make another part invalid
PRIMARY = 3  # number of primary claims that a recipe may have at a scale
Seeds = Annotated[int, Field(ge=1, le=1000)]  # number of seeds; from seed 1000 on dials are chosen
# one layer; a stage's possible keys depend on its kind (encore/recipe/kinds/)
RawStage = Annotated[Content, WithJsonSchema({"type": "object", "$comment": "a stage"})]
RawEvals = Annotated[Content, WithJsonSchema({"type": "object", "$comment": "evals"})]
Overlays = dict[str, RawStage | None]  # null: the stage does not exist at this scale or in this arm
Claims = Annotated[dict[Name, Claim], AfterValidator(with_ids)]
Gates = Annotated[dict[Identifier, Gate], Field(min_length=1), AfterValidator(with_ids)]
Names = Some[str]
T = TypeVar("T", bound=Model)


class Quickstart(Model):
    """The arms and seeds of the recipe's quickstart."""

    arms: Names | None = None
    seeds: Seeds | None = None


class ArmAtScale(Model):
    """The layer of an arm at one scale, which is merged on top of all other layers."""

    stages: Overlays


class AnyScale(Model):
    """The layer that a scale merges on top of the recipe."""

    about: str = ""
    # another scale, whose layers, arms, claims and published numbers apply below the keys set here
    like: str | None = None
    seeds: Seeds | None = None
    stages: Overlays = {}
    evals: RawEvals = {}
    expected: Expected | None = None  # the learning curve of a run that is in order


class Scale(AnyScale):
    """A scale that is written in recipe.yaml, or in a recipe's only file."""

    arms: dict[str, ArmAtScale | None] = {}  # null: the arm does not exist at this scale


class ArmOfScale(Model):
    """An arm in a scale's file: a new one if it has `about`, otherwise the scale's changes to an arm."""

    about: str = ""
    stages: Overlays = {}
    evals: RawEvals = {}


class Arm(ArmOfScale, Scaled):
    """The layer that an arm merges on top of a scale."""


class LeaveOneOut(Model):
    """Arms that each lack one part of the arm `full`; the report draws them as a figure."""

    full: str
    without: Names


class Step(Model):
    """A step of `stage_ladder`: a checkpoint that training goes through."""

    name: Annotated[str, Field(min_length=1, max_length=24), SOME_TEXT]  # name of the step in the paper
    at: str  # arm/checkpoint; the report leaves out a step if its arm does not run


class Deviation(Model):
    """A difference between the recipe and the paper's run."""

    what: str
    why: str


class ScaleFile(AnyScale):
    """The file of one scale beside recipe.yaml, such as gpu.yaml: what the scale adds."""

    arms: dict[Name, ArmOfScale | None] = {}
    claims: Claims = {}
    published: Items[Published] = ()
    deviations: Items[Deviation] = ()


class Document(Model):
    """A whole recipe, as if it were written in one file."""

    version: Positive = Field(alias="schema")
    title: Line
    url: Line
    cost: dict[str, str] = {}  # scale -> what a run costs
    found: str = ""  # results of our runs, in sentences
    seeds: Seeds = 3  # number of seeds
    # The first judged seed. Seeds on which dials were chosen must not be judged, so set it above them; a
    # sweep that chooses dials has seeds from 1000 on.
    first_seed: Seed = 0
    quickstart: Quickstart = Quickstart()
    claims: Claims = {}
    gates: Gates = {}
    # Curves of reward against KL, each through two or more places (arm/checkpoint) with a task that scores
    # kl. Claims and gates compare them at equal KL: `of: frontier/NAME`, `metric: TASK/gold_at_kl/NATS` (or
    # proxy_at_kl, accuracy_at_kl; TASK/accuracy_at_forward_kl/NATS is at the forward KL of the one task that
    # scores it). Choose a KL that every seed reaches: beyond the last place a seed has no number.
    frontiers: Annotated[dict[Name, Names], Field(min_length=1)] = {}
    dials: Items[Dial] = ()
    published: Items[Published] = ()
    deviations: Items[Deviation] = ()
    # scale -> why the recipe does not have it, which is the answer to a user who asks for it
    without: dict[str, Line] = {}
    ladder: Names = ()  # arms that each add something to the arm before; a figure of the report
    leave_one_out: LeaveOneOut | None = None
    # factor -> its value -> the arm with this value; a figure of the report in which only one dial changes at
    # a time
    factors: dict[Line, Annotated[dict[str, str], Field(min_length=2)]] = {}
    # The checkpoint with which each arm's other checkpoints are compared, problem by problem: which problems
    # each solves in equally many samples, where the curves of pass@k cross, how likely right answers are
    # before training.
    coverage: str | None = None
    # Checkpoints that training goes through, in order; a section of the report. A step may branch off
    # (R1-Zero, beside R1), but must stand below the steps it is built on. Published numbers with a step's
    # `at` are shown below ours.
    stage_ladder: Annotated[tuple[Step, ...], Field(strict=False, min_length=2)] = ()
    arms: Annotated[dict[Name, Arm], Field(min_length=1)]
    stages: Annotated[dict[Identifier, RawStage], Field(min_length=1)]
    scales: Annotated[dict[Name, Scale], Field(min_length=1)]
    evals: RawEvals

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the mistakes in names, in claims and in dials."""
        yield from below("", self._mistaken_scales())
        yield from below("", self._mistaken_arms())
        yield from below("", self._mistaken_claims())
        yield from below("", self._mistaken_dials())

    def _mistaken_scales(self) -> Iterator[Mistake]:
        likeness.check_likeness({name: scale.like for name, scale in self.scales.items()})
        for name in self.without:
            if name in self.scales:
                yield f"without.{name}", "the recipe has this scale; remove one of the two"
        sections: dict[str, Mapping[str, Scaled]] = {"arms": self.arms, "claims": self.claims}
        for section, parts in sections.items():
            for name, part in parts.items():
                known(f"{section}.{name}.scales", part.scales or (), list(self.scales), "scale")

    def _mistaken_arms(self) -> Iterator[Mistake]:
        arms = list(self.arms)
        if NO_STAGE in self.stages:
            yield f"stages.{NO_STAGE}", "a reserved name; call the stage something else"
        for arm in arms:
            if arm in NO_ARMS:
                yield f"arms.{arm}", "a reserved name; call the arm something else"
        if arms[0] != "base-recipe":
            yield f"arms.{arms[0]}", 'the first arm must be "base-recipe", the paper\'s own'
        known("quickstart.arms", self.quickstart.arms or (), arms, "arm")
        known("ladder", self.ladder, arms, "arm")
        for factor, levels in self.factors.items():
            known(f"factors.{factor}", levels.values(), arms, "arm")
        if lacking := self.leave_one_out:
            known("leave_one_out.full", [lacking.full], arms, "arm")
            known("leave_one_out.without", lacking.without, arms, "arm")

    def _mistaken_claims(self) -> Iterator[Mistake]:
        primary: dict[str, list[str]] = {scale: [] for scale in self.scales}
        for claim in self.claims.values():
            yield from below(f"claims.{claim.id}.test", claim.test.mistakes())
            for scale in (claim.scales or self.scales) if claim.primary else ():
                if len(primary.get(scale, ())) == PRIMARY:
                    names = ", ".join(primary[scale])
                    told = f"a fourth primary claim at scale {scale}; at most {PRIMARY}, and {names} are"
                    yield f"claims.{claim.id}.primary", told
                primary.setdefault(scale, []).append(claim.id)

    def _mistaken_dials(self) -> Iterator[Mistake]:
        first = self.first_seed
        if self.dials and self.claims and first >= DIAL_SEEDS:
            words = (
                f"seeds from {DIAL_SEEDS} on are for dials, and claims are judged on those below; got {first}"
            )
            yield "first_seed", words
        judged = range(first, first + LOOKS[-1]) if first < DIAL_SEEDS else range(0)
        after = max((seed for dial in self.dials for seed in dial.seeds if seed in judged), default=0) + 1
        for index, dial in enumerate(self.dials):
            if mistaken := [seed for seed in dial.seeds if seed in judged]:
                yield (
                    f"dials[{index}].seeds",
                    f"seed {mistaken[0]} would be judged too: judged seeds count from first_seed ({first}), "
                    f"up to {len(judged)} of them; set first_seed: {after}, or choose dials on seeds from "
                    f"{DIAL_SEEDS} on",
                )
            yield from below(f"dials[{index}].trials", dial.unequal())

    @property
    def claimed_metrics(self) -> list[str]:
        """The metrics that claims name, on either side."""
        return [metric for claim in self.claims.values() for _, metric in claim.test.sides]

    @property
    def metrics(self) -> list[str]:
        """The metrics that claims, gates and published numbers name."""
        of_gates = [metric for gate in self.gates.values() for _, metric in gate.sides]
        return [*self.claimed_metrics, *of_gates, *filter(None, (each.metric for each in self.published))]

    @property
    def asked_of_frontiers(self) -> dict[str, list[str]]:
        """The metrics that claims and gates compare, each once, by the name of their frontier."""
        metrics: dict[str, dict[str, None]] = {}
        for comparison in (*(claim.test for claim in self.claims.values()), *self.gates.values()):
            for place, metric in comparison.sides:
                if (name := frontier(place)) is not None:
                    metrics.setdefault(name, {})[metric] = None
        return {name: list(asked) for name, asked in metrics.items()}

    def arms_of(self, claim: Claim) -> set[str]:
        """Return the arms of a claim: of its sides, of its gates, and all arms of its frontiers."""
        compared: list[Comparison] = [claim.test, *(self.gates[need.gate] for need in claim.needs)]
        places = [side.place for comparison in compared for side in comparison.sides]
        return {at.partition("/")[0] for place in places for at in self.places(place)}

    def places(self, place: str) -> tuple[str, ...]:
        """Return all places of the frontier that `place` names; for any other place, this place alone."""
        name = frontier(place)
        return (place,) if name is None else self.frontiers.get(name, ())


def sound(content: Content) -> Document | None:
    """Return the document that is left without the values that have mistakes.

    `read_content` reports the mistakes. The result is None if too little is left for a document.
    """
    rest = copy.deepcopy(dict(content))
    for _ in range(MOST_TRIES):
        try:
            return Document.model_validate(rest)
        except ValidationError as error:
            for place in mistaken_places(error, rest):
                if not place:
                    return None
                remove(rest, place)
    return None


def read_content(content: Content, model: type[T]) -> T:
    """Return the content of a file as a `model`. Raises UserError with all mistakes in keys and values."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise UserError("\n".join(lines(error, content))) from None
