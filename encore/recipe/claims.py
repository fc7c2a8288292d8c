"""The claims of a recipe, the gates that they need, the published numbers, and the choices of dials.

A place is `arm/checkpoint`, with a metric of an evaluation task (`heldout/accuracy`); `arm/stage`, with a
final number of training; or `frontier/NAME`, with a metric at a KL (`heldout/gold_at_kl/2.5`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, WithJsonSchema

from encore.errors import UserError, nearest
from encore.recipe.base import (
    AboveZero,
    Line,
    Mistake,
    Model,
    NotNegative,
    Positive,
    Seed,
    Some,
    matching,
    refuse,
)
from encore.recipe.mistakes import shown

FRONTIER = "frontier"  # used instead of an arm's name, so no arm may have the name
FORMS = "GATE >= NUMBER, GATE <= NUMBER or GATE within P%"
RELATIONS = (">=", "<=", "within")
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
OURS = "ours"  # used instead of a paper if no paper makes the claim
PAPER = OURS + r"|[0-9]{4}\.[0-9]{4,5}|https://\S+"

Paper = Annotated[
    str, AfterValidator(matching(PAPER, 'an arXiv number such as "2402.03300", an address, or ours'))
]
Relation = Literal[">=", "<=", "within"]


def address(paper: str) -> str:
    """Return the address of a paper that is given by its arXiv number or by its address."""
    return paper if paper.startswith("https://") else f"https://arxiv.org/abs/{paper}"


class Side(NamedTuple):
    """A side of a comparison: a place, and the metric that is read at this place."""

    place: str
    metric: str


class Comparison(Model):
    """A metric at one place, minus the metric at another place if there is one."""

    metric: str
    of: str
    against: str | None = None
    against_metric: str | None = None  # the metric of `against`, if it differs from `metric`

    @property
    def sides(self) -> tuple[Side, ...]:
        """The side of `of`, and the side of `against` if the comparison has one."""
        of = Side(self.of, self.metric)
        return (of, Side(self.against, self.against_metric or self.metric)) if self.against else (of,)


class Test(Comparison):
    """The comparison by which a claim is judged."""

    __test__ = False  # pytest would collect a class of this name

    direction: Literal["higher", "lower", "equal"]
    margin: NotNegative
    # The least |difference| that would matter to a researcher, in the metric's unit; a smaller true one is
    # `equivalent`. Default: the margin, which direction equal always uses. The recipes here set it by
    # metric, to the values below, if the margin is 0 or larger than the value (a smaller margin already says
    # that less matters):
    #   accuracy, score, pass@k, maj@k, format_rate, truncation_rate, accuracy of a reward model or judge 0.02
    #   win_rate 0.05 · rewards on [0, 1], visible, special_cased, called and malformed too, 0.02 · calls 0.1
    #   log10 of a fraction 0.1 · value_loss 0.1 · spread of ratios 0.01
    #   gold, proxy and a stage's reward by a reward model, in standard deviations   0.1
    #   kl and log-ratios, nats a sequence 0.5 · entropy, nats a token 0.05 · divergence from a teacher,
    #   nats a token, 0.01 · sampler_gap, nats a token, 0.0001 · length, tokens 1
    #   collapsed/…, crossed, rates over seeds and resamples   0.2 · gained, lost and their like, shares of
    #   problems, 0.02 · perplexity 0.05
    #   updates_to/…, samples_to/…, flops_to/…, seconds_to/…   a tenth of the run's budget
    #   sigmoid/midpoint, a log2 of operations, 0.25
    #   of a bandit: angles of gradients, degrees 1 · regret, shares of a gradient or of tokens, nats 0.02
    smallest_effect: AboveZero | None = None

    @property
    def matters(self) -> float:
        """The least |difference| that would matter in practice."""
        return self.margin if self.smallest_effect is None else self.smallest_effect

    def mistakes(self) -> Iterator[Mistake]:
        """Yield mistakes: a smallest effect is missing, or set by a claim of equality, which has a margin.

        `against_metric` without `against` is a mistake too.
        """
        if self.against_metric is not None and self.against is None:
            yield "against_metric", "it goes with against, which is missing"
        if self.direction == "equal" and self.smallest_effect is not None:
            yield "smallest_effect", "of a claim of equality the margin is it; remove it"
        if self.direction != "equal" and not self.matters:
            words = "missing; with margin 0 nothing says which difference would not matter"
            yield "smallest_effect", words


@dataclass(frozen=True)
class Need:
    """A condition on a gate. `bound` is in the gate's unit or, for `within`, a share of its target."""

    gate: str
    relation: Relation
    bound: float

    def __str__(self) -> str:
        bound = f"{100 * self.bound:g}%" if self.relation == "within" else f"{self.bound:g}"
        return f"{self.gate} {self.relation} {bound}"

    @classmethod
    def parse(cls, text: str) -> "Need":
        """Return the need in a text such as `clip_cuts >= 0.02`. Raises UserError for any other text."""
        parts = text.split()
        if len(parts) != 3:
            raise UserError(f'expected {FORMS}, got "{text}"')
        gate, relation, bound = parts
        if relation not in RELATIONS:
            raise UserError(f'unknown relation "{relation}" in "{text}"{nearest(relation, list(RELATIONS))}')
        share = relation == "within"
        if not re.fullmatch(f"{NUMBER}%" if share else NUMBER, bound):
            wanted = "a percentage such as 20%" if share else "a number"
            raise UserError(f'expected {wanted} after {relation}, got "{bound}" in "{text}"')
        value = float(bound.rstrip("%")) / (100 if share else 1)
        if share and value <= 0:
            raise UserError(f'expected more than 0% after within, got "{bound}" in "{text}"')
        return cls(gate, cast(Relation, relation), value)


def _needs(value: Any) -> tuple[Need, ...]:
    """Return the needs of a claim, which the recipe writes as a text or a list of texts."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        refuse(f"expected text or a list, got {shown(value)}")
    if not texts:
        refuse("must not be empty")
    if wrong := [text for text in texts if not isinstance(text, str)]:
        refuse(f"expected text, got {shown(wrong[0])}")
    try:
        return tuple(map(Need.parse, texts))
    except UserError as error:
        refuse(str(error))


TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {"type": "string"}}]}
Needs = Annotated[tuple[Need, ...], BeforeValidator(_needs), WithJsonSchema(TEXTS)]


class Named(Model):
    """A part of a recipe that has a name as its key."""

    _id: str = PrivateAttr("")

    @property
    def id(self) -> str:
        """The name of the part: its key in the recipe."""
        return self._id


N = TypeVar("N", bound=Named)


def with_ids(parts: dict[str, N]) -> dict[str, N]:
    """Set the `id` of each part to its key, and return the parts."""
    for name, part in parts.items():
        part._id = name
    return parts


class Scaled(Model):
    """A part of a recipe that may belong to some of the scales only."""

    scales: Some[str] | None = None  # scales to which it belongs; default: the scales of its file

    def is_at(self, scale: str) -> bool:
        """Return whether the part belongs to the scale."""
        return self.scales is None or scale in self.scales


class Claim(Named, Scaled):
    """A sentence of a paper, and the comparison by which it is judged."""

    says: Line
    # The number that the paper reports, with its scale: "AIME 2024: 15.6% to 71.0%". It is shown beside the
    # claim.
    published: Line | None = None
    source: Line
    # The author of the claim: an arXiv number, an address, or `ours` if no paper makes it. Claims of the
    # paper at the recipe's `url`, of other papers and of ours are counted separately.
    paper: Paper
    second_hand: bool = False  # whether the source was read in another text than the paper itself
    # `sanity` means that no sane code could fail the claim, so that it is a check of the code and counted
    # separately.
    kind: Literal["finding", "sanity"] = "finding"
    test: Test
    # whether it is one of at most three claims, at a scale, that decide the result for the paper
    primary: bool = False
    # The outcome of each earlier attempt, such as "2026-11-22: open, 8 seeds". A test counts as an attempt if
    # its outcome was seen, did not favour the claim, and the world, the dials or the question were changed
    # afterwards. Each attempt has a fifth of the alpha of the attempt before it.
    again: Some[Line] = ()
    # The conditions under which the claim's mechanism is at work; otherwise the claim is not tested. A text
    # or a list of `GATE >= NUMBER`, `GATE <= NUMBER`, `GATE within P%` (of the gate's target). Set before any
    # judged run.
    needs: Needs = ()
    # What in our world may have caused a reversed verdict; a record with such a verdict needs it.
    world: Line | None = None

    @property
    def attempt(self) -> int:
        """The number of this attempt at the claim; the first is 1."""
        return 1 + len(self.again)

    @property
    def url(self) -> str:
        """The address of the paper that makes the claim; "" for a claim of ours."""
        return "" if self.paper == OURS else address(self.paper)


class Gate(Comparison, Named):
    """A quantity on which claims put conditions (`needs`): a metric at a place, or a difference of two."""

    target: float | None = None  # target value for a need with `within`
    about: Line | None = None

    def met(self, need: Need, value: float) -> bool:
        """Return whether the gate's value fulfils a need of the gate; nan never does."""
        if need.relation == ">=":
            return value >= need.bound
        if need.relation == "<=":
            return value <= need.bound
        if self.target is None:
            share = f"{100 * need.bound:g}%"
            raise UserError(f"gates.{need.gate}.target: missing; the gate must be within {share} of it")
        return abs(value - self.target) <= need.bound * abs(self.target)

    def needed(self, need: Need) -> str:
        """Return the values that fulfil a need of the gate: `at least 0.02`, `within 20% of 1.5`."""
        if need.relation == "within":
            return f"within {100 * need.bound:g}% of {self.target:g}"
        return f"at {'least' if need.relation == '>=' else 'most'} {need.bound:g}"


class Dial(Model):
    """A choice that was made by looking at results. The seeds of these results are never judged."""

    what: Line
    seeds: Some[Seed]  # seeds on which the value was chosen: three or more, from 1000 on
    # method -> number of trials, the same for all methods
    trials: Annotated[dict[str, Positive], Field(min_length=1)] | None = None
    sweep: str | None = None  # the recipe that made the trials; methods are then its arms
    outcome: Line

    def unequal(self) -> Iterator[Mistake]:
        """Yield a mistake for each method with fewer or more trials than the first method."""
        for method, number in (self.trials or {}).items():
            first, budget = next(iter((self.trials or {}).items()))
            if number != budget:
                yield (
                    "",
                    f"{first} has {budget}, {method} {number}; a fair comparison gives every method as many; "
                    "write further ones in an entry of their own",
                )


class Published(Scaled):
    """A number that the paper published."""

    what: Line
    value: float
    unit: str = ""
    source: Line
    metric: str | None = None  # win_rate or length_controlled, if there are `of` and `against`
    at: str | None = None
    of: str | None = None
    against: str | None = None


def frontier(place: str) -> str | None:
    """Return the name of the frontier in a place such as `frontier/NAME`; None for any other place."""
    arm, slash, name = place.partition("/")
    return name if slash and arm == FRONTIER else None
