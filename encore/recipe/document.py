"""What the files of a recipe say, all but what its stages and evaluations come to in an arm at a scale."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, ValidationError

from encore.errors import UserError
from encore.recipe.base import SOME_TEXT, Identifier, Items, Line, Model, Name, Positive, Seed, Some
from encore.recipe.claims import Claim, Comparison, Dial, Gate, Published, Scaled, frontier, with_ids
from encore.recipe.mistakes import lines

Seeds = Annotated[int, Field(ge=1, le=1000)]  # how many; from seed 1000 on dials are chosen
RawStage = dict[str, Any]  # the keys depend on the kind: encore/recipe/kinds/
RawEvals = dict[str, Any]
Overlays = dict[str, RawStage | None]  # null: the stage does not exist here
Claims = Annotated[dict[Name, Claim], AfterValidator(with_ids)]
Gates = Annotated[dict[Identifier, Gate], Field(min_length=1), AfterValidator(with_ids)]
Names = Some[str]
T = TypeVar("T", bound=Model)


class Quickstart(Model):
    """The arms and seeds of the recipe's quickstart."""

    arms: Names | None = None
    seeds: Seeds | None = None


class ArmAtScale(Model):
    """What an arm changes at one scale alone; laid over everything else."""

    stages: Overlays


class AnyScale(Model):
    """What a scale lays over the recipe."""

    about: str = ""
    # another scale: its layers, arms, claims and published numbers, and over them what is said here
    like: str | None = None
    seeds: Seeds | None = None
    stages: Overlays = {}
    evals: RawEvals = {}


class Scale(AnyScale):
    """A scale of a recipe's one file, or of recipe.yaml."""

    arms: dict[str, ArmAtScale | None] = {}  # null: the arm does not exist here


class ArmOfScale(Model):
    """A new arm of a scale's file, which has an `about`; or what the scale changes of an arm."""

    about: str = ""
    stages: Overlays = {}
    evals: RawEvals = {}


class Arm(ArmOfScale, Scaled):
    """What an arm lays over a scale."""


class LeaveOneOut(Model):
    """Arms that each lack one part of `full`; a figure of the report."""

    full: str
    without: Names


class Step(Model):
    """A checkpoint that training goes through."""

    name: Annotated[str, Field(min_length=1, max_length=24), SOME_TEXT]  # as the paper calls it
    at: str  # arm/checkpoint; the report leaves out a step whose arm does not run


class Deviation(Model):
    """Where the recipe does not do what the paper did."""

    what: str
    why: str


class ScaleFile(AnyScale):
    """The file of one scale beside recipe.yaml, such as gpu.yaml: what the scale adds."""

    arms: dict[Name, ArmOfScale | None] = {}
    claims: Claims = {}
    published: Items[Published] = ()
    deviations: Items[Deviation] = ()


class Document(Model):
    """A recipe, as one file would have it."""

    version: Positive = Field(alias="schema")
    title: Line
    url: Line
    cost: dict[str, str] = {}  # scale -> what a run costs
    found: str = ""  # what our runs show, in sentences
    seeds: Seeds = 3  # how many
    # A seed on which dials were chosen is not judged: later ones are, and a sweep takes seeds from 1000 on.
    first_seed: Seed = 0
    quickstart: Quickstart = Quickstart()
    claims: Claims = {}
    gates: Gates = {}
    # Curves of reward against KL, each through two places (arm/checkpoint) or more, whose task scores kl.
    # Claims and gates compare them at equal KL: `of: frontier/NAME`, `metric: TASK/gold_at_kl/NATS` (or
    # proxy_at_kl, accuracy_at_kl). Take a KL that every seed reaches: where it is beyond the last place a
    # seed has no number.
    frontiers: Annotated[dict[Name, Names], Field(min_length=1)] = {}
    dials: Items[Dial] = ()
    published: Items[Published] = ()
    deviations: Items[Deviation] = ()
    # scale -> why the recipe has none such: what is answered to who asks for it
    without: dict[str, Line] = {}
    ladder: Names = ()  # arms that each add something to the one before; a figure of the report
    leave_one_out: LeaveOneOut | None = None
    # The checkpoint that each arm's others are set against, problem by problem (of arms that evaluate it):
    # which each solves in as many samples, where the curves of pass@k cross, how likely it finds right
    # answers.
    coverage: str | None = None
    # Checkpoints that training goes through, in order: a section of the report. A step may branch off
    # (R1-Zero, beside R1); what it is built on must not stand below it. Published numbers whose `at` is a
    # step's stand below ours.
    stage_ladder: Annotated[tuple[Step, ...], Field(strict=False, min_length=2)] = ()
    arms: Annotated[dict[Name, Arm], Field(min_length=1)]
    stages: Annotated[dict[Identifier, RawStage], Field(min_length=1)]
    scales: Annotated[dict[Name, Scale], Field(min_length=1)]
    evals: RawEvals

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
        """Frontier -> the metrics that claims and gates ask of it, each once."""
        metrics: dict[str, dict[str, None]] = {}
        for comparison in (*(claim.test for claim in self.claims.values()), *self.gates.values()):
            for place, metric in comparison.sides:
                if (name := frontier(place)) is not None:
                    metrics.setdefault(name, {})[metric] = None
        return {name: list(asked) for name, asked in metrics.items()}

    def arms_of(self, claim: Claim) -> set[str]:
        """Return the arms on both sides of a claim and of the gates that it needs; all arms of a frontier."""
        compared: list[Comparison] = [claim.test, *(self.gates[need.gate] for need in claim.needs)]
        places = [side.place for comparison in compared for side in comparison.sides]
        return {at.partition("/")[0] for place in places for at in self.places(place)}

    def places(self, place: str) -> tuple[str, ...]:
        """Return the places of a frontier, or the one place of an arm that is given."""
        name = frontier(place)
        return (place,) if name is None else self.frontiers.get(name, ())


def read(content: Mapping[str, Any], model: type[T]) -> T:
    """What a file says, typed. Raises UserError with all mistakes in its keys and their values."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise UserError("\n".join(lines(error, content))) from None
