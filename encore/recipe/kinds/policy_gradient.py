"""Stage `policy_gradient`: a lecture's naive, unclipped and clipped policy gradients."""

from collections.abc import Iterator
from typing import Literal

from encore.objectives.deltas import check_group
from encore.recipe.kinds.stage import Asking, Dtype, Mistake, Weights, rule
from encore.recipe.rl_args import PolicyGradientArgs


class PolicyGradientStage(Asking):
    """The policy is trained by a lecture's policy gradients."""

    stands_for = {"chat": ("template",)}
    required = ("task", "template", "rewards")

    run: Literal["policy_gradient"]
    needs: dict[Literal["policy"], str] = {}
    args: PolicyGradientArgs
    saved_dtype: Dtype | None = None  # as in stage pretrain
    rewards: Weights | None = None  # by name: a function of encore/rewards/rules.py, or of the task's world

    @rule
    def _responses_to_compare(self) -> Iterator[Mistake]:
        """Yield a delta that compares more responses than there are."""
        check_group(self.args.delta, self.args.num_generations)
        yield from ()
