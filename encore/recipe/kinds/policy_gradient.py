"""Stage `policy_gradient`: the naive, unclipped and clipped policy gradient of CS336, lecture 17."""

from collections.abc import Iterator
from typing import Literal

from encore.recipe.base import Mistake
from encore.recipe.grpo_args import PolicyGradientArgs
from encore.recipe.kinds.stage import Asking, rule
from encore.recipe.machine import Dtype
from encore.recipe.reward_names import check_overlong
from encore.recipe.task import Rewarded

# deltas that subtract from each response the mean of a prompt's responses
COMPARING = ("centered", "normalized")


class PolicyGradientStage(Rewarded, Asking):
    """A stage that trains the policy by one of the policy gradients of CS336, lecture 17."""

    stands_for = {"chat": ("template",)}
    required = ("task", "template", "rewards")

    run: Literal["policy_gradient"]
    needs: dict[Literal["policy"], str] = {}
    args: PolicyGradientArgs
    saved_dtype: Dtype | None = None  # dtype of the saved weights, as in stage pretrain

    def step_size(self, processes: int) -> int:
        """Return the number of responses in an optimizer step: all responses of the rollout."""
        return self.args.prompts_per_epoch * self.args.num_generations

    @property
    def steps(self) -> int:
        """The number of optimizer steps."""
        return self.args.epochs * self.args.inner_steps

    @rule
    def _responses_to_compare(self) -> Iterator[Mistake]:
        """Yield mistakes: a delta that needs several responses to a prompt, or reward soft_overlong."""
        check_overlong(self.rewards or {}, None, None)
        responses, delta = self.args.num_generations, self.args.delta
        if responses < 2 and delta in COMPARING:
            words = f"delta {delta} compares at least 2 responses, got {responses}"
            yield "args.num_generations", words

    @rule
    def _ratio(self) -> Iterator[Mistake]:
        """Yield a mistake if `log_ratio` is set, but the loss has no ratio."""
        if self.args.log_ratio and self.args.loss == "naive":
            yield "args.log_ratio", "loss naive has no ratio; use unclipped or clipped"
