"""The sampling of a stage `grpo`: its prompts, the length of completions, tools, and sampling ahead."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from encore.recipe.base import Mistake, Model, OptimizerStep, Positive, Share, below
from encore.recipe.caps import Caps, check_boundaries
from encore.recipe.kinds.domains import DomainStage
from encore.recipe.kinds.stage import rule
from encore.recipe.task import WorldTask
from encore.recipe.tool import Tool


class MixedGroups(Model):
    """The settings of sampling until every group of the rollout has mixed outcomes (DAPO, Eq. 11)."""

    max_rounds: Positive


class Replay(Model):
    """The share of earlier prompts in each iteration after the first (DeepSeekMath, §4.1.4)."""

    every: Positive  # number of optimizer steps in an iteration
    share: Share


class SamplingStage(DomainStage):
    """A stage whose rollouts may have rising caps, mixed groups, earlier prompts, a tool, or old weights."""

    # {step: cap}, instead of args.max_completion_length: the cap of all rollouts after this number of
    # optimizer steps, rising from step 0 on. Loss_type dr_grpo, which divides by a cap, and soft_overlong
    # read the rollout's cap.
    caps: dict[OptimizerStep, Positive] | None = None
    dynamic_sampling: MixedGroups | None = None
    replay: Replay | None = None
    # How many times each problem stands among the prompts of an epoch. With few problems a rollout asks each
    # several times, each time for a group of its own, as RL on a single problem does (arXiv 2504.20571).
    copies: Positive = 1
    tool: Tool | None = (
        # a tool that the policy may call; args.max_completion_length counts the policy's own tokens alone
        None
    )
    learn_results: bool = False  # whether the tool's results are in the loss too
    # The number of rollouts that are sampled ahead, as in asynchronous RL: after the policy has sampled a
    # rollout, it learns from this number of others before it learns from it. Whoever samples,
    # args.vllm_importance_sampling_correction corrects for it: encore/learning/ahead.py
    max_staleness: Annotated[int, Field(ge=0)] | None = None

    @property
    def caps_by_step(self) -> Caps:
        """The caps on completions, by the number of optimizer steps from which they apply."""
        if self.caps is None:
            return super().caps_by_step
        return dict(sorted((int(step), cap) for step, cap in self.caps.items()))

    @rule
    def _rising_caps(self) -> Iterator[Mistake]:
        """Yield mistakes unless caps rise from step 0 on, within the stage, between two rollouts."""
        if self.caps is None:
            return
        caps, args = self.caps_by_step, self.args
        if not caps or next(iter(caps)) != 0:
            yield "caps", f"expected the first at step 0, got {next(iter(caps), 'none')}"
            return
        for before, after in pairwise(caps):
            if caps[after] <= caps[before]:
                yield f"caps.{after}", f"expected more than {caps[before]}, got {caps[after]}"
        fixed = args.max_completion_length if "max_completion_length" in args.model_fields_set else caps[0]
        if fixed != caps[0]:
            words = f"{fixed}, but caps begins with {caps[0]}; remove one of them"
            yield "args.max_completion_length", words
        last, steps = max(caps), args.max_steps
        if steps <= 0:
            yield "args.max_steps", "missing; caps counts its steps"
        elif last >= steps:
            yield f"caps.{last}", f"expected less than args.max_steps {steps}"
        elif lengths := self.lengths:
            check_boundaries(caps, lengths[0] * args.num_iterations, lengths[1])

    @rule
    def _tool(self) -> Iterator[Mistake]:
        """Yield keys that do not go with a tool, or have no effect without a tool."""
        if self.tool is None:
            if self.learn_results:
                words = "without effect, because no tool gives results; name one, or remove it"
                yield "learn_results", words
            return
        world = self.task.world if isinstance(self.task, WorldTask) else None
        yield from below("tool", self.tool.mistakes(world))
        if self.resources.gpu > 1:
            yield "tool", "its turns end at different times on each GPU, which then wait; use one GPU"

    @rule
    def _order_of_prompts(self) -> Iterator[Mistake]:
        """Yield keys that dynamic sampling and replay need, and keys that set another order of prompts."""
        args = self.args
        if self.dynamic_sampling and self.task is not None and not self.task.is_verified:
            yield "dynamic_sampling", "it reads accuracy, and the task has no verifier"
        for key in ("domains", "replay"):
            if self.copies > 1 and getattr(self, key):
                yield "copies", f"{key} has its own order of prompts; remove one of them"
        if self.replay is None:
            return
        if self.dynamic_sampling:
            yield "replay", "dynamic_sampling draws its own prompts; remove one of them"
        if args.shuffle_dataset and "shuffle_dataset" in args.model_fields_set:
            yield "args.shuffle_dataset", "replay has its own order; remove it"
        if args.max_steps <= 0:
            yield "args.max_steps", "missing; replay plans all iterations beforehand"

    @rule
    def _ahead(self) -> Iterator[Mistake]:
        """Yield keys that contradict sampling ahead of the updates."""
        if self.max_staleness is None:
            return
        if self.dynamic_sampling:
            yield "max_staleness", "dynamic_sampling samples until a rollout is full; remove one of them"
        if self.caps:
            yield "max_staleness", "caps change while rollouts are in flight; remove one of them"
        if not self.max_staleness:
            return
        args = self.args
        if self.sampler != "lean" and not args.use_vllm:
            yield (
                "max_staleness",
                "needs a sampler that reports log-probabilities; set sampler: lean, or args.use_vllm: true",
            )
        if self.learn_results:
            yield (
                "learn_results",
                "no sampler reports log-probabilities of results; remove it or max_staleness",
            )
        rollouts = args.max_steps / self.steps_a_rollout
        if 0 < rollouts <= self.max_staleness:
            words = f"expected less than the {rollouts:g} rollouts of the stage, got {self.max_staleness}"
            yield "max_staleness", words
        if not args.use_vllm or args.vllm_mode != "server":
            return
        if self.resources.gpu > 1:
            words = (
                f"a vLLM server samples ahead for one training GPU, but resources.gpu is {self.resources.gpu}"
            )
            yield "max_staleness", words
        if self.tool:
            yield (
                "tool",
                "a vLLM server that samples ahead takes no turns; remove it, or use vllm_mode: colocate",
            )
