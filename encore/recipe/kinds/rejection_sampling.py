"""Stage `rejection_sampling`: the policy's right completions, as demonstrations."""

from typing import Literal

from encore.recipe.args import RejectionSamplingArgs
from encore.recipe.kinds.stage import Drawing


class RejectionSamplingStage(Drawing):
    """Completions are drawn from the policy, and those that the verifier gives 1 are kept."""

    product = "demonstrations"
    required = ("task", "template")

    run: Literal["rejection_sampling"]
    needs: dict[Literal["policy"], str] = {}
    args: RejectionSamplingArgs
    decontaminate: bool = False  # as in stage grpo
    # least value of each of these rewards that a right completion must have to be kept: of the task's world,
    # format, or english
    keep: dict[str, float] = {}
