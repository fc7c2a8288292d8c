"""Stage `rejection_sampling`: the policy's right completions are made demonstrations."""

from collections.abc import Iterator
from typing import Literal

from encore.errors import known
from encore.recipe.args import RejectionSamplingArgs
from encore.recipe.base import Mistake
from encore.recipe.kinds.stage import Drawing, rule

COMMON = ("format", "english")  # rewards of rewards/rules.py that every task has
IN_DEVIATIONS = ("gold", "judge")  # rewards in standard deviations; all others are from 0 to 1


class RejectionSamplingStage(Drawing):
    """A stage that draws completions of the policy and keeps those that the verifier finds right."""

    product = "demonstrations"
    required = ("task", "template")

    run: Literal["rejection_sampling"]
    needs: dict[Literal["policy"], str] = {}
    args: RejectionSamplingArgs
    decontaminate: bool = False  # whether to keep out prompts of evaluations, as in stage grpo
    # reward -> the least value that a right completion needs to be kept; a reward of the task's world,
    # format, or english
    keep: dict[str, float] = {}

    @rule
    def _thresholds(self) -> Iterator[Mistake]:
        """Yield mistakes: a reward that the task lacks, or a threshold that all completions or none pass."""
        world = self.task.make_world() if self.task else None
        known("keep", self.keep, [*COMMON, *(world.rewards if world else {})], "reward", as_key=True)
        for name, least in self.keep.items():
            if name not in IN_DEVIATIONS and not 0 < least <= 1:
                yield f"keep.{name}", f"expected more than 0 and at most 1, got {least:g}"
