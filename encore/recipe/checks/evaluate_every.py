"""Key `evaluate_every` of a stage: that its steps are known, and that there is something to measure by."""

from collections.abc import Mapping

from encore.errors import UserError
from encore.recipe.evals import Evals

KEY = "evaluate_every"
MOST = 1000  # evaluations within a stage: each is a job with a model on disk


def check_evaluate_every(name: str, stage: Mapping, evals: Evals) -> None:
    """Raise UserError where nothing would be measured within stage `name`, or under another's name."""
    if KEY not in stage:
        return
    every, steps = stage[KEY], stage["args"].get("max_steps")
    if steps is None:
        raise UserError(f"{KEY}: it needs args.max_steps, by which the steps to measure are known beforehand")
    if every >= steps:
        raise UserError(f"{KEY}: expected less than args.max_steps, {steps}, got {every}")
    if (count := (steps - 1) // every) > MOST:
        raise UserError(
            f"{KEY}: {every} makes {count} evaluations of {steps} steps, expected at most {MOST}; "
            f"nearest: {(steps - 1) // (MOST + 1) + 1}"
        )
    if "quantized" in stage.get("lora", {}):
        raise UserError(f"{KEY}: a model of 4 bits is whole only at the end; remove lora.quantized")
    checkpoints = evals.checkpoints
    measured = next((key for key, place in checkpoints.items() if place == name), None)
    if measured is None:
        raise UserError(
            f"{KEY}: no checkpoint of evals.checkpoints is this stage; add one: {{after: {name}}}"
        )
    for step in range(every, steps, every):
        if f"{measured}_step{step}" in checkpoints:
            raise UserError(
                f"{KEY}: evals.checkpoints.{measured}_step{step} has the name of step {step}; rename it"
            )
