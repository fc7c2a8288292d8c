"""Stage `label`: a labeller ranks the completions of samples or preferences."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from encore.errors import UserError, nearest
from encore.recipe.base import AboveZero, Mistake, Model, NotNegative, Positive, Share, below
from encore.recipe.form import placed
from encore.recipe.kinds.stage import Stage, rule
from encore.recipe.machine import Source
from encore.recipe.task import JUDGED, Comparisons, refusing

# `by` (the labeller) -> the roles it needs
NEEDS: dict[str, tuple[str, ...]] = {
    "gold": ("data",),
    "annotator": ("data",),
    "judge": ("data",),
    "reward_model": ("data", "reward_model"),
    "self": ("data", "policy", "reference"),
    "verifier": ("data",),
    "language_model": ("data",),
    "dataset": (),
}
# by -> a role that it may need, instead of the dial `model`
MAY_NEED: dict[str, tuple[str, ...]] = {"language_model": ("policy",)}
# by -> its dials, under `labeller`
DIALS: dict[str, tuple[str, ...]] = {
    "annotator": ("agreement", "accuracy", "temperature"),
    "judge": ("accuracy", "temperature", "bias", "length_bias", "position_bias", "both_orders"),
    "reward_model": ("ensemble",),
    "self": ("beta",),
    "language_model": ("model", "question", "both_orders"),
}
# by -> the reward that it perceives, which the world of the samples must have
REWARDS = {"gold": "gold", "annotator": "gold", "judge": "judge"}
VALIDATION = 0.1
NO_WORLD = "a world has no comparisons; name its samples in needs.data"
OF_DATASETS = ("task", "template", "problems")  # keys that only `by: dataset` has
AGAIN = ("reward_model", "self", "language_model")  # labellers that can label preferences anew


class Labeller(Model):
    """The dials of the labeller that key `by` names."""

    agreement: float | None = None  # for annotator: share of pairs on which two annotators agree
    # for annotator and judge: share of pairs ranked as gold ranks them, by a judge that sees both orders
    accuracy: float | None = None
    # for annotator and judge: temperature of their random errors, in units of gold
    temperature: NotNegative | None = None
    bias: NotNegative = 1.0  # for judge: 0 for no bias, 1 for the world's own
    length_bias: float = 0.0  # for judge: units of gold that it adds for every ten tokens
    # for judge: units of gold by which it prefers the first reply shown over the last
    position_bias: float = 0.0
    both_orders: bool = True  # whether each pair is shown in both orders, which cancels position_bias
    beta: AboveZero = 1.0  # for self: the reward is beta log(policy/reference)
    # for a reward model with several members: how their scores are combined
    ensemble: Literal["mean", "worst"] = "mean"
    model: Source | None = None  # for language_model: the model; without it needs.policy is asked
    question: str | None = None  # for language_model: a text with {prompt}, {first} and {second}


class LabelStage(Stage):
    """A stage that ranks completions. It makes preferences or, with `keep`, demonstrations."""

    product = "preferences"
    takes = {"data": "samples or preferences"}  # preferences can be labelled anew by a model

    run: Literal["label"]
    needs: dict[Literal["data", "reward_model", "policy", "reference"], str] = {}
    by: Literal["gold", "annotator", "judge", "reward_model", "self", "verifier", "language_model", "dataset"]
    labeller: Labeller = Labeller()
    # best: the best reply to each prompt; right: all replies that the verifier gives 1
    keep: Literal["preferences", "best", "right"] = "preferences"
    validation: Share | None = None  # share of the prompts that are not trained on; default 0.1
    task: Annotated[Comparisons, refusing({"a world": NO_WORLD})] | None = None  # for by: dataset: the task
    template: str | None = None  # for by: dataset: the template
    problems: Positive | None = None  # for by: dataset: number of rows, the first ones

    @property
    def held_out(self) -> float:
        """The share of the prompts that training leaves out."""
        return VALIDATION if self.validation is None else self.validation

    def unsound(self) -> Iterator[Mistake]:
        """Yield the mistakes within the task and the template."""
        if self.task is not None:
            yield from below("task", self.task.mistakes())
        if self.template is not None:
            yield from placed("template", self.template)

    @property
    def made(self) -> str:
        """The product: preferences or, with `keep`, demonstrations."""
        return "preferences" if self.keep == "preferences" else "demonstrations"

    @rule
    def _roles(self) -> Iterator[Mistake]:
        """Yield roles that `by` lacks, and roles that it does not use."""
        by = self.by
        for role in NEEDS[by]:
            if role not in self.needs:
                yield f"needs.{role}", f"missing; by: {by} needs {' and '.join(NEEDS[by])}"
                return
        for role in self.needs:
            if role not in (*NEEDS[by], *MAY_NEED.get(by, ())):
                yield f"needs.{role}", f"by: {by} does not use it; remove it"
                return

    @rule
    def _dials(self) -> Iterator[Mistake]:
        """Yield mistakes: dials that `by` does not have, a missing dial, or one that others determine."""
        by, set_dials = self.by, self.labeller.model_fields_set
        dials = DIALS.get(by, ())
        for dial in self.labeller.said:
            if dial not in dials:
                hint = nearest(dial, [*dials]) if dials else "; it has none"
                yield f"labeller.{dial}", f"no dial of by: {by}{hint}"
                return
        if by == "annotator" and len(set_dials) != 1:
            words = f"expected one of {', '.join(dials)}, got {', '.join(self.labeller.said) or 'none'}"
            yield "labeller", words
        if by == "judge" and set_dials >= {"accuracy", "temperature", "bias"}:
            words = "it follows from temperature and bias; remove one of the three"
            yield "labeller.accuracy", words

    @rule
    def _language_model(self) -> Iterator[Mistake]:
        """Yield mistakes of a labelling language model: named twice, not named, or without a question."""
        if self.by != "language_model":
            return
        dials = self.labeller
        if dials.model is None and "policy" not in self.needs:
            yield "labeller.model", "missing; by: language_model needs it, or needs.policy"
        elif dials.model and "policy" in self.needs:
            yield "labeller.model", "needs.policy is given too; remove one of them"
        elif dials.question is None:
            yield "labeller.question", "missing; by: language_model needs it"
        else:
            for place in JUDGED:
                if dials.question.count(place) != 1:
                    yield "labeller.question", f"expected {place} exactly once"
                    return

    @rule
    def _data_set(self) -> Iterator[Mistake]:
        """Yield keys that only `by: dataset` may have or, for `by: dataset`, a missing `task`."""
        if self.by == "dataset":
            if self.task is None:
                yield "task", "missing; by: dataset needs it"
            return
        for key in OF_DATASETS:
            if key in self.model_fields_set:
                words = "the samples have it already; only by: dataset takes it; remove it"
                yield key, words
                return

    @rule
    def _demonstrations(self) -> Iterator[Mistake]:
        """Yield mistakes: `keep: right` without the verifier, or a `validation` split of demonstrations."""
        if self.keep == "preferences":
            return
        if self.keep == "right" and self.by != "verifier":
            words = f"right needs by: verifier, got by: {self.by}; expected best"
            yield "keep", words
        elif self.validation is not None:
            words = f"demonstrations (keep: {self.keep}) have no such split; remove it"
            yield "validation", words


def check_relabels(by: str, where: str) -> None:
    """Raise UserError unless labeller `by` can label preferences again, which no longer have their task."""
    if by not in AGAIN:
        raise UserError(
            f"by: {by} takes samples, but {where} makes preferences, which only {' or '.join(AGAIN)} takes"
        )


def check_world(by: str, world: Any, where: str) -> None:
    """Raise UserError unless the samples' world has the reward that `by` perceives.

    `world` is None for samples of a Hub dataset.
    """
    reward = REWARDS.get(by)
    if reward and (world is None or reward not in world.rewards):
        name = f"world {world.name}" if world else "a Hub dataset"
        raise UserError(f"by: {by} needs a world with the reward {reward}, but {where} is from {name}")
