"""Stage `policy_gradient`: a lecture's naive, unclipped and clipped policy gradients."""

from typing import Literal

from encore.recipe.kinds.stage import Asking, Dtype, Source, Weights
from encore.recipe.rl_args import PolicyGradientArgs


class PolicyGradientStage(Asking):
    """The policy is trained by a lecture's policy gradients."""

    stands_for = {"chat": ("template",)}
    required = ("task", "template", "rewards")

    run: Literal["policy_gradient"]
    needs: dict[Literal["policy"], str] = {}
    args: PolicyGradientArgs
    model: Source | None = None
    saved_dtype: Dtype | None = None  # as in stage pretrain
    rewards: Weights | None = None  # by name: a function of encore/rewards/rules.py, or of the task's world
