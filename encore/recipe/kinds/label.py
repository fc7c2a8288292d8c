"""Stage `label`: samples or preferences are ranked by who labels them."""

from typing import Literal

from encore.recipe.base import AboveZero, Model, NotNegative, Positive, Share
from encore.recipe.kinds.stage import RawTask, Source, Stage


class Labeller(Model):
    """The dials of `by`."""

    agreement: float | None = None  # of annotators: share of pairs on which two of them agree
    accuracy: float | None = None  # of annotators and the judge: share of pairs ranked as gold ranks them
    # of annotators and the judge: of their random errors, in units of gold
    temperature: NotNegative | None = None
    bias: NotNegative | None = None  # of the judge: 0 none, 1 the world's own
    length_bias: float | None = None  # of the judge: units of gold it adds for every ten tokens
    # of the judge: units of gold by which it favours the first reply shown over the last
    position_bias: float | None = None
    both_orders: bool | None = None  # each pair is shown in both orders, which cancels position_bias
    beta: AboveZero | None = None  # of self: the reward is beta log(policy/reference)
    ensemble: Literal["mean", "worst"] | None = None  # of a reward model with several members
    model: Source | None = None  # of language_model; else needs.policy is asked
    question: str | None = None  # of language_model: a text with {prompt}, {first} and {second}


class LabelStage(Stage):
    """Completions are ranked: preferences or, with `keep`, demonstrations."""

    product = "preferences"
    takes = {"data": "samples or preferences"}  # preferences are labelled anew, by a model
    data_set = "task-hub-preferences"

    run: Literal["label"]
    needs: dict[Literal["data", "reward_model", "policy", "reference"], str] = {}
    by: Literal["gold", "annotator", "judge", "reward_model", "self", "verifier", "language_model", "dataset"]
    labeller: Labeller = Labeller()
    # best: the best reply to each prompt; right: all replies that the verifier gives 1
    keep: Literal["preferences", "best", "right"] = "preferences"
    validation: Share | None = None  # share of the prompts that are not trained on; default 0.1
    task: RawTask | None = None  # of by: dataset
    template: str | None = None  # of by: dataset
    problems: Positive | None = None  # of by: dataset: how many rows, the first ones
