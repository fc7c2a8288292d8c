"""Completions of one prompt, a group, and of a rollout: whether groups fill it, and micro-batches do."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError
from encore.recipe import batch

# Kind of stage -> its least num_generations, and the default: a critic needs no group.
KINDS = {"grpo": (2, 8), "ppo": (1, 1)}
FARTHEST = 100_000  # a divisor is looked for up to there


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError unless a rollout of a resolved stage of KINDS is whole micro-batches and groups."""
    args, (least, default) = stage["args"], KINDS[stage["run"]]
    if args.get("generation_batch_size") and args.get("steps_per_generation"):
        raise UserError(
            "args.generation_batch_size: steps_per_generation is given too; remove one of the two"
        )
    size = batch.completions(stage)
    if size < 2:
        raise UserError(
            f"args.steps_per_generation: expected a rollout of at least 2 completions, got {size}"
        )
    rows = 1 if "global_batch" in stage else args.get("per_device_train_batch_size", batch.DEFAULT)
    if size % rows:
        raise UserError(
            f"args.generation_batch_size: {size} is no multiple of per_device_train_batch_size, {rows}; "
            f"nearest: {size - size % rows or rows}"
        )
    group = args.get("num_generations", default) or 0
    if group < least:
        raise UserError(
            f"args.num_generations: expected at least {least}, which an advantage compares, got {group}"
        )
    if size % group:
        near = (n for gap in range(group, FARTHEST) for n in (2 * group - gap, gap) if least <= n <= size)
        fits = next((n for n in near if not size % n), size)
        raise UserError(
            f"args.num_generations: {group} does not divide the {size} completions of a rollout; "
            f"nearest: {fits}"
        )
