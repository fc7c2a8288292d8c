"""Stage `distillation`: the policy learns a teacher's next-token distributions on sampled completions."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from encore.recipe.base import Mistake
from encore.recipe.grpo_args import DistillationArgs
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import rule

TEACHER = "teacher"  # the role of the stage that makes the teacher
# name of a divergence -> TRL's interpolation coefficient of the generalized Jensen-Shannon divergence
DIVERGENCES = {"forward_kl": 0.0, "jsd": 0.5, "reverse_kl": 1.0}
# arguments of GRPOConfig that the loss of distillation does not read
UNREAD = (
    *("beta", "use_bias_correction_kl", "sync_ref_model", "ref_model_mixup_alpha"),
    *("ref_model_sync_steps", "importance_sampling_level", "epsilon", "epsilon_high", "delta"),
    *("sapo_temperature_neg", "sapo_temperature_pos", "off_policy_mask_threshold", "entropy_coef"),
    *("use_adaptive_entropy", "entropy_coef_min", "entropy_coef_max", "entropy_coef_delta"),
    *("entropy_target", "top_entropy_quantile", "scale_rewards", "multi_objective_aggregation"),
    *("vllm_importance_sampling_correction"),
)


class DistillationStage(RolloutStage):
    """A stage that trains the policy to predict as a teacher does: on-policy distillation (arXiv 2306.13649).

    Its rewards are measured, not learned from.
    """

    least_group = 1  # 1, because no advantage compares completions
    required = ("task", "template", "needs.teacher", "divergence")
    stands_for = {"chat": ("template",), "global_batch": ("gradient_accumulation_steps",)}
    written_out = (
        "num_iterations",
        ("steps_per_generation", "generation_batch_size"),
        *("gradient_accumulation_steps", "temperature", "top_p", "mask_truncated_completions"),
        *("lr_scheduler_type", "learning_rate", "max_completion_length"),
    )

    run: Literal["distillation"]
    needs: dict[Literal["policy", "teacher"], str] = {}
    args: DistillationArgs = DistillationArgs()
    # The divergence at each token of a completion, in nats: of the policy from the teacher (reverse_kl), of
    # the teacher from the policy (forward_kl), or of both from their mean (jsd).
    divergence: Literal["reverse_kl", "forward_kl", "jsd"] | None = None
    # share of the rollouts that the policy samples; the teacher samples the others
    on_policy: Annotated[float, Field(ge=0, le=1)] = 1.0

    @property
    def by_length(self) -> bool:
        """Whether an update's micro-batches have completions of like length: no, they are drawn at random."""
        return False

    @rule
    def _unread(self) -> Iterator[Mistake]:
        """Yield arguments of GRPO that distillation does not read, and vLLM, which it does not start."""
        for name in UNREAD:
            if name in self.args.model_fields_set:
                yield f"args.{name}", "stage distillation does not read it; remove it"
        if self.args.use_vllm:
            yield "args.use_vllm", "stage distillation samples by transformers, or by sampler lean; remove it"

    @rule
    def _measured_alone(self) -> Iterator[Mistake]:
        """Yield rewards with a weight other than 0, because nothing learns from them."""
        for name, weight in (self.rewards or {}).items():
            if weight:
                yield f"rewards.{name}", f"expected 0, got {weight:g}: rewards are measured, not learned from"
        if self.ensemble:
            yield "ensemble", "there is no reward model; remove it"

    @rule
    def _teacher_that_samples(self) -> Iterator[Mistake]:
        """Yield a mistake if the teacher is to sample in another way than by the lean sampler."""
        if self.on_policy < 1 and self.sampler != "lean":
            words = "the teacher samples by sampler lean alone; write it, or let a stage sample write traces"
            yield "on_policy", words
