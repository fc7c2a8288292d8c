"""Stage `policy_gradient`: a lecture's naive, unclipped and clipped policy gradients."""

from collections.abc import Iterator
from typing import Literal

from encore.objectives.deltas import check_group
from encore.recipe.base import Mistake
from encore.recipe.kinds.stage import Asking, rule
from encore.recipe.machine import Dtype
from encore.recipe.reward_names import check_overlong
from encore.recipe.rl_args import PolicyGradientArgs
from encore.recipe.task import Rewarded


class PolicyGradientStage(Rewarded, Asking):
    """The policy is trained by a lecture's policy gradients."""

    stands_for = {"chat": ("template",)}
    required = ("task", "template", "rewards")

    run: Literal["policy_gradient"]
    needs: dict[Literal["policy"], str] = {}
    args: PolicyGradientArgs
    saved_dtype: Dtype | None = None  # as in stage pretrain

    @rule
    def _responses_to_compare(self) -> Iterator[Mistake]:
        """Yield a delta that compares more responses than there are, and a reward without its cache."""
        check_overlong(self.rewards or {}, None, None)
        check_group(self.args.delta, self.args.num_generations)
        yield from ()
