"""Stage `distillation`: the policy learns a teacher's next-token distributions on sampled completions."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from encore.recipe.base import Mistake
from encore.recipe.form import placed
from encore.recipe.grpo_args import DistillationArgs
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import rule
from encore.worlds.text import FEEDBACK, RESPONSE

TEACHER = "teacher"  # the role of the stage that makes the teacher
# arguments by which a teacher that is the policy's own follows it
FOLLOWING = ("sync_ref_model", "ref_model_mixup_alpha", "ref_model_sync_steps")
# name of a divergence -> TRL's interpolation coefficient of the generalized Jensen-Shannon divergence
DIVERGENCES = {"forward_kl": 0.0, "jsd": 0.5, "reverse_kl": 1.0}
# arguments of GRPOConfig that the loss of distillation does not read
UNREAD = (
    *("beta", "use_bias_correction_kl", "importance_sampling_level", "epsilon", "epsilon_high", "delta"),
    *("sapo_temperature_neg", "sapo_temperature_pos", "off_policy_mask_threshold", "entropy_coef"),
    *("use_adaptive_entropy", "entropy_coef_min", "entropy_coef_max", "entropy_coef_delta"),
    *("entropy_target", "top_entropy_quantile", "scale_rewards", "multi_objective_aggregation"),
    "vllm_importance_sampling_correction",
)


class DistillationStage(RolloutStage):
    """A stage that trains the policy to predict as a teacher does: on-policy distillation (arXiv 2306.13649).

    Its rewards are measured, not learned from. With `hindsight` the teacher is the policy itself, which is
    shown a right response to the question: SDPO (arXiv 2601.20802).
    """

    least_group = 1  # 1, because no advantage compares completions
    required = ("task", "template", "divergence")
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
    # Instead of a teacher: the text that the policy itself reads in place of the question when it teaches. It
    # has {question} and {response}, which stands for another right response of the group. A completion
    # without one is not learned from. The teacher has the policy's first weights, or follows it by
    # args.sync_ref_model.
    hindsight: str | None = None
    # Beside hindsight: the text that the teacher reads for a wrong completion of whose group no other
    # response is right. It has {question} and {feedback}, which stands for the verifier's words on the
    # completion: the tests that its program fails (world functions, or verifier: tests), or what the method
    # `feedback` of a user's world returns.
    feedback: str | None = None

    @property
    def by_length(self) -> bool:
        """Whether an update's micro-batches have completions of like length: no, they are drawn at random."""
        return False

    @rule
    def _one_teacher(self) -> Iterator[Mistake]:
        """Yield a mistake unless the stage has one teacher; and arguments that this teacher does not read."""
        if self.hindsight is None:
            if TEACHER not in self.needs:
                yield f"needs.{TEACHER}", "missing; or write hindsight, and the policy teaches itself"
            for name in FOLLOWING:
                if name in self.args.model_fields_set:
                    yield f"args.{name}", "a teacher of another stage stays as it is; remove it"
        elif TEACHER in self.needs:
            yield "hindsight", f"needs.{TEACHER} names a teacher; remove one of the two"

    @rule
    def _hindsight(self) -> Iterator[Mistake]:
        """Yield mistakes: a place is missing, groups have one response, or nothing verifies answers."""
        if self.hindsight is None:
            return
        yield from placed("hindsight", self.hindsight, RESPONSE)
        if (self.args.num_generations or 1) < 2:
            words = "hindsight takes a response of the same group: expected at least 2"
            yield "args.num_generations", words
        if self.task is not None and not self.task.is_verified:
            yield "hindsight", "nothing verifies the task's answers, so no response is known to be right"
        if self.on_policy < 1:
            yield "on_policy", "hindsight is on what the policy itself has sampled; remove it"

    @rule
    def _feedback(self) -> Iterator[Mistake]:
        """Yield mistakes: a place is missing, there is no hindsight, or nothing has words on a completion."""
        if self.feedback is None:
            return
        yield from placed("feedback", self.feedback, FEEDBACK)
        if self.hindsight is None:
            yield "feedback", "stands beside hindsight; write it, or remove feedback"
        if self.task is not None and not self.task.gives_feedback:
            words = "nothing says in words why a completion is wrong; world functions and verifier: tests do,"
            yield "feedback", f"{words} and a world with a method feedback(problem, completion)"

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
