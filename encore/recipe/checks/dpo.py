"""Keys of a `dpo` stage that contradict each other or that TRL ignores; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError, known
from encore.objectives.loss_types import DPO_LOSSES, SMOOTHED


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first mistake in a resolved `dpo` stage that no schema shows."""
    args = stage["args"]
    losses = args["loss_type"]
    known("args.loss_type", losses, list(DPO_LOSSES), "loss")
    if not losses:
        raise UserError("args.loss_type: expected at least one loss, got none")
    if len(args.get("loss_weights") or losses) != len(losses):
        raise UserError(
            f"args.loss_weights: {len(args['loss_weights'])} of them for {len(losses)} losses in loss_type"
        )
    if args["beta"] <= 0:
        raise UserError(f"args.beta: expected more than 0, got {args['beta']}")
    if args.get("label_smoothing") and not set(losses) & set(SMOOTHED):
        raise UserError(
            f"args.label_smoothing: loss_type {', '.join(losses)} takes no notice of it; of those that do, "
            "robust is the sigmoid loss with flipped labels"
        )
    if args.get("truncation_mode", "keep_start") != "keep_start":
        raise UserError("args.truncation_mode: TRL keeps the start; remove it")
    if args.get("sync_ref_model") and args.get("precompute_ref_log_probs"):
        raise UserError("args.precompute_ref_log_probs: the reference model changes with sync_ref_model")
