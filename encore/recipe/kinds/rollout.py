"""The common part of stages `grpo` and `ppo`: the policy is trained on its own rollouts."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from encore.recipe.base import Mistake, Positive
from encore.recipe.caps import Caps
from encore.recipe.grpo_args import GrpoArgs
from encore.recipe.kinds.stage import Asking, rule
from encore.recipe.kinds.training import MeasuredStage, TuningStage
from encore.recipe.machine import Dtype
from encore.recipe.reward_names import check_overlong
from encore.recipe.task import Rewarded

REWARD_MODEL, SAFETY_MODEL = LEARNED = ("reward_model", "safety_model")  # rewards by models of a recipe
FARTHEST = 100_000  # divisors are tried up to this number
# arguments that change how completions are drawn -> the value that has no effect
PLAIN = {"use_vllm": False, "top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0}
PLAIN |= {"generation_kwargs": None, "use_transformers_continuous_batching": False}


class RolloutStage(Rewarded, Asking, TuningStage, MeasuredStage):
    """A stage that trains the policy on rewards of its own completions.

    With `global_batch`, a number of completions, a rollout has args.generation_batch_size completions.
    """

    required: ClassVar[tuple[str, ...]] = ("task", "template", "rewards", "args")
    learned: ClassVar[tuple[str, ...]] = (REWARD_MODEL,)
    least_group: ClassVar[int]  # completions of a prompt that an advantage compares

    args: GrpoArgs = GrpoArgs()
    longest_prompt: Positive | None = None  # tokens of the longest prompt; longer prompts are left out
    saved_dtype: Dtype | None = None  # dtype of the saved weights, as in stage pretrain
    # how the scores of the reward model's members are combined; default: mean
    ensemble: Literal["mean", "worst"] | None = None
    # tokens before the cap over which reward soft_overlong falls (DAPO, Eq. 13)
    soft_overlong_cache: Positive | None = None
    # lean: encore/sampling/decoding.py, for small models; default: transformers, or vLLM by args.use_vllm
    sampler: Literal["lean"] | None = None
    # GPUs of a vLLM server that the stage starts and ends with args.vllm_mode: server. They are on the same
    # node, in addition to resources.gpu, and not part of the lineage.
    vllm_gpus: Positive | None = None

    @property
    def weights(self) -> dict[str, dict[str, float]]:
        """The weights of rewards by their place in the stage: `rewards`."""
        return {"rewards": self.rewards or {}}

    @property
    def by_length(self) -> bool:
        """Whether the micro-batches of an update have completions of like length, which pads them less.

        They have where this changes no loss; the losses of PPO are means over the tokens of an update.
        """
        return True

    @property
    def serving(self) -> int:
        """The number of GPUs of the stage's vLLM server."""
        return self.vllm_gpus or 0

    @property
    def batches(self) -> dict[str, int]:
        """The numbers of completions of an optimizer step and of a rollout, by the keys that set them."""
        whole = self.args.generation_batch_size
        of_rollout = {"args.generation_batch_size": whole} if whole and self.global_batch else {}
        return super().batches | of_rollout

    def completions(self, processes: int = 1) -> int:
        """Return the number of completions of a rollout, over all processes, by TRL's rule for unset keys."""
        if stated := self.args.generation_batch_size or self.global_batch:
            return stated
        micro_batches = self.args.steps_per_generation or self.args.gradient_accumulation_steps
        return micro_batches * self.args.per_device_train_batch_size * processes

    @property
    def lengths(self) -> tuple[int, int] | None:
        """The lengths of a rollout and of an optimizer step; None if TRL sets the length of a rollout.

        They are in completions if the stage has `global_batch`, otherwise in micro-batches.
        """
        if self.global_batch:
            whole = self.args.generation_batch_size
            return (whole, self.global_batch) if whole else None
        whole = self.args.steps_per_generation
        return (whole, self.args.gradient_accumulation_steps) if whole else None

    @property
    def units(self) -> tuple[str, str]:
        """The names of the two keys from which `lengths` are read."""
        if self.global_batch:
            return "generation_batch_size", "global_batch"
        return "steps_per_generation", "gradient_accumulation_steps"

    @property
    def steps_a_rollout(self) -> float:
        """The number of optimizer steps on each rollout."""
        whole, step = self.lengths or (1, 1)
        return whole * self.args.num_iterations / step

    @rule
    def _whole_groups(self) -> Iterator[Mistake]:
        """Yield a mistake unless a rollout consists of whole micro-batches and whole groups."""
        args = self.args
        if args.generation_batch_size and args.steps_per_generation:
            words = "steps_per_generation is given too; remove one of the two"
            yield "args.generation_batch_size", words
            return
        size = self.completions()
        rows = 1 if self.global_batch else args.per_device_train_batch_size
        group = args.num_generations or 0
        if size < 2:
            words = f"expected a rollout of at least 2 completions, got {size}"
            yield "args.steps_per_generation", words
        elif size % rows:
            yield (
                "args.generation_batch_size",
                f"{size} is no multiple of per_device_train_batch_size, {rows}; "
                f"nearest: {size - size % rows or rows}",
            )
        elif group < self.least_group:
            words = f"expected at least {self.least_group}, which an advantage compares, got {group}"
            yield "args.num_generations", words
        elif size % group:
            words = (
                f"{group} does not divide the {size} completions of a rollout; nearest: {self._near(size)}"
            )
            yield "args.num_generations", words

    @property
    def caps_by_step(self) -> Caps:
        """The caps on completions by step, from step 0 on; empty without a cap."""
        cap = self.args.max_completion_length
        return {} if cap is None else {0: cap}

    def _near(self, size: int) -> int:
        """Return the group size that divides a rollout of `size` and is nearest to the recipe's own."""
        group = self.args.num_generations or 0
        near = (n for gap in range(group, FARTHEST) for n in (2 * group - gap, gap))
        return next((n for n in near if self.least_group <= n <= size and not size % n), size)

    @rule
    def _overlong(self) -> Iterator[Mistake]:
        """Yield mistakes: reward soft_overlong without its cache, or a cache that is not below the cap."""
        names = [name for rewards in self.weights.values() for name in rewards]
        check_overlong(names, self.soft_overlong_cache, min(self.caps_by_step.values(), default=None))
        yield from ()

    @rule
    def _server(self) -> Iterator[Mistake]:
        """Yield keys that contradict the use of vLLM, colocated or as a server."""
        args = self.args
        if not args.use_vllm or args.vllm_mode != "server":
            if self.vllm_gpus is not None:
                yield (
                    "vllm_gpus",
                    "without effect; a server is started by args.use_vllm: true and vllm_mode: server",
                )
            return
        if args.vllm_enable_sleep_mode:
            words = "a server has its own GPUs and never sleeps; remove it"
            yield "args.vllm_enable_sleep_mode", words
        if not self.resources.gpu:
            words = "server sends weights from GPU to GPU, but resources.gpu is 0"
            yield "args.vllm_mode", words
        elif self.vllm_gpus is None:
            yield (
                "vllm_gpus",
                f"missing; how many GPUs the server gets, beside the {self.resources.gpu} of resources.gpu",
            )

    @rule
    def _lean(self) -> Iterator[Mistake]:
        """Yield an argument that sampler lean would ignore, and weights that it cannot read."""
        if self.sampler != "lean":
            return
        if self.resources.shard:
            yield "sampler", "lean needs whole weights, but resources.shard spreads them; remove one"
        for name, plain in PLAIN.items():
            value = getattr(self.args, name)
            if value not in (plain, None):
                words = f"{value}, but sampler lean draws from the whole distribution"
                yield f"args.{name}", words
