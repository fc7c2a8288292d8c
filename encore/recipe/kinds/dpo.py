"""Stage `dpo`: the policy is trained on pairs of completions, without a reward model."""

from collections.abc import Iterator
from typing import Literal

from encore.errors import known
from encore.recipe.args import DpoArgs
from encore.recipe.base import Mistake, NotNegative
from encore.recipe.kinds.pairs import PairsStage
from encore.recipe.kinds.stage import rule
from encore.recipe.loss_types import DPO_LOSSES, ORPO, SMOOTHED


class DpoStage(PairsStage):
    """A stage that trains the policy by DPO or a related loss. The examples of a batch are pairs."""

    written_out = ("loss_type", "beta", "optim", "learning_rate", "lr_scheduler_type", "max_length")

    run: Literal["dpo"]
    args: DpoArgs = DpoArgs()
    # Whether the loss takes log pi_ref as 0 for every completion, as CPO (arXiv 2401.08417) and SimPO
    # (arXiv 2405.14734) do. The reference then only serves to measure what was learned.
    reference_free: bool = False
    # gamma of SimPO: by how much beta times the mean log-probability of a token should differ in a pair
    simpo_gamma: NotNegative = 0.0

    @property
    def has_reference(self) -> bool:
        return not self.reference_free

    @rule
    def _losses(self) -> Iterator[Mistake]:
        """Yield losses that do not exist, and keys that the losses ignore."""
        args = self.args
        losses = args.loss_type
        known("args.loss_type", losses, [*DPO_LOSSES, ORPO], "loss")
        if not losses:
            yield "args.loss_type", "expected at least one loss, got none"
            return
        if args.loss_weights and len(args.loss_weights) != len(losses):
            words = f"{len(args.loss_weights)} of them for {len(losses)} losses in loss_type"
            yield "args.loss_weights", words
        if args.label_smoothing and not set(losses) & set(SMOOTHED):
            yield (
                "args.label_smoothing",
                f"loss_type {', '.join(losses)} takes no notice of it; of those that do, robust is the "
                "sigmoid loss with flipped labels",
            )

    @rule
    def _without_reference(self) -> Iterator[Mistake]:
        """Yield keys that contradict a loss without a reference, or that belong to one."""
        for name in ("precompute_ref_log_probs", "sync_ref_model"):
            if self.reference_free and getattr(self.args, name):
                yield f"args.{name}", "there is no reference with reference_free; remove one of the two"
        if self.simpo_gamma and not (self.reference_free and "sigmoid_norm" in self.args.loss_type):
            yield "simpo_gamma", "SimPO has reference_free: true and args.loss_type: [sigmoid_norm] beside it"

        if ORPO in self.args.loss_type and (len(self.args.loss_type) > 1 or not self.reference_free):
            yield "args.loss_type", "orpo stands alone, and has reference_free: true beside it"

    @rule
    def _no_effect(self) -> Iterator[Mistake]:
        """Yield arguments that TRL ignores, or that contradict each other."""
        if self.args.truncation_mode != "keep_start":
            yield "args.truncation_mode", "TRL keeps the start; remove it"
        if self.args.sync_ref_model and self.args.precompute_ref_log_probs:
            words = "the reference model changes with sync_ref_model"
            yield "args.precompute_ref_log_probs", words
