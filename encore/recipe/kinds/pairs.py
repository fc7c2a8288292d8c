"""The common part of the stages that train a policy on pairs of completions, without a reward model."""

from collections.abc import Iterator
from typing import Literal

from encore.recipe.args import PairsArgs
from encore.recipe.base import Mistake, Positive
from encore.recipe.kinds.stage import rule
from encore.recipe.kinds.training import MeasuredStage, TuningStage
from encore.recipe.machine import Dtype


class PairsStage(TuningStage, MeasuredStage):
    """A stage that trains the policy on pairs of a chosen and a rejected completion."""

    holds_data_out = True
    takes = {"data": "preferences"}
    required = ("needs.data", "pairs", "args")

    # the default of the role reference is the policy
    needs: dict[Literal["policy", "data", "reference"], str] = {}
    args: PairsArgs = PairsArgs()
    saved_dtype: Dtype | None = None  # dtype of the saved weights, as in stage pretrain
    # the pairs of each prompt's ranking to learn from
    pairs: Literal["all", "best_worst", "one"] | None = None
    problems: Positive | None = None  # number of prompts to train on, the first ones; default: all

    @property
    def has_reference(self) -> bool:
        """Whether the loss compares the policy with a reference."""
        return True

    @rule
    def _beta(self) -> Iterator[Mistake]:
        """Yield a mistake if the policy would not be kept near the reference."""
        if self.args.beta <= 0:
            yield "args.beta", f"expected more than 0, got {self.args.beta}"
