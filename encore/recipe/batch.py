"""The batch of an optimizer step, over all processes: what a recipe states, and each process's part of it."""

from collections.abc import Mapping
from math import gcd
from typing import Any

from encore.errors import UserError

DEFAULT = 8  # per_device_train_batch_size of transformers


def of_process(stage: Mapping[str, Any], processes: int) -> dict[str, int]:
    """The arguments by which each of so many processes takes its part of `global_batch`; {} without it.

    As many examples at a time as `per_device_train_batch_size` allows and the batch, and the rollout if there
    is one, divide into. Raises UserError where they do not divide among the processes, or with loss_type
    bnpo, the mean of each micro-batch, into exactly so many at a time.
    """
    if "global_batch" not in stage:
        return {}
    whole = {"global_batch": stage["global_batch"]}
    if rollout := stage["args"].get("generation_batch_size"):
        whole["args.generation_batch_size"] = rollout
    for name, size in whole.items():
        if size % processes:
            fits = max(n for n in range(1, processes) if not any(s % n for s in whole.values()))
            raise UserError(f"{name}: {size} does not divide among {processes} GPUs; nearest: {fits} GPUs")
    own = gcd(*whole.values()) // processes
    most = stage["args"].get("per_device_train_batch_size", DEFAULT)
    rows = max(n for n in range(1, min(most, own) + 1) if not own % n)
    if stage["args"].get("loss_type") == "bnpo" and rows != most:
        raise UserError(
            f"args.per_device_train_batch_size: {most} does not divide {own}, a GPU's part of the batch, and "
            f"loss_type bnpo depends on it; nearest: {rows}"
        )
    return {
        "per_device_train_batch_size": rows,
        "gradient_accumulation_steps": stage["global_batch"] // processes // rows,
    }


def units(stage: Mapping[str, Any]) -> tuple[str, str]:
    """The fields that say how long a rollout and an optimizer step are: in examples, or in micro-batches."""
    if "global_batch" in stage:
        return "generation_batch_size", "global_batch"
    return "steps_per_generation", "gradient_accumulation_steps"


def step_size(stage: Mapping[str, Any], processes: int) -> int:
    """Return the examples of an optimizer step over all processes."""
    args = stage.get("args", {})
    if stage["run"] == "policy_gradient":
        return int(args["prompts_per_epoch"] * args["num_generations"])
    rows = args.get("per_device_train_batch_size", DEFAULT)
    return int(stage.get("global_batch") or rows * args.get("gradient_accumulation_steps", 1) * processes)


def rows_at_once(stage: Mapping[str, Any], processes: int) -> int:
    """Return the examples of a micro-batch of one process. Raises UserError as `of_process`."""
    if stage["run"] == "policy_gradient":
        return step_size(stage, processes)
    args = stage.get("args", {}) | of_process(stage, processes)
    return int(args.get("per_device_train_batch_size", DEFAULT))


def steps(stage: Mapping[str, Any]) -> int | None:
    """Return the optimizer steps of a stage, of each member of an ensemble; None if it goes by epochs."""
    args = stage.get("args", {})
    if stage["run"] == "policy_gradient":
        return int(args["epochs"] * args["inner_steps"])
    most = int(args.get("max_steps", -1))
    return most if most > 0 else None


def completions(stage: Mapping[str, Any], processes: int = 1) -> int:
    """Return the completions of a stage's rollout, over all processes; if it does not say, by TRL's rule."""
    if stage["run"] == "policy_gradient":
        return step_size(stage, processes)
    args = stage["args"]
    if stated := args.get("generation_batch_size") or stage.get("global_batch"):
        return int(stated)
    micro_batches = args.get("steps_per_generation") or args.get("gradient_accumulation_steps", 1)
    return int(micro_batches * args.get("per_device_train_batch_size", DEFAULT) * processes)


def rollout(stage: Mapping[str, Any]) -> tuple[int, int] | None:
    """The values of `units`, or None where the recipe leaves the length of a rollout to TRL."""
    of_rollout, of_step = units(stage)
    given = {**stage["args"], "global_batch": stage.get("global_batch")}
    return (given[of_rollout], given.get(of_step, 1)) if given.get(of_rollout) else None


def steps_a_rollout(stage: Mapping[str, Any]) -> float:
    """Return how many optimizer steps are made on a rollout."""
    whole, step = rollout(stage) or (1, 1)
    return whole * stage["args"].get("num_iterations", 1) / step
