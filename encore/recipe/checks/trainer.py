"""Fields of `args` at which a Trainer would fall, or lose work, once all that a stage needs is trained."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError

INTERVALS = ("logging_steps", "eval_steps", "save_steps")  # of optimizer steps, or a share of all of them
SAVING = ("steps", "epoch")  # values of save_strategy by which a stage goes on after a kill
HOLDING_OUT = ("dpo", "reward_model")  # kinds of stage that have data to evaluate on


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first mistake in a resolved stage of a Trainer that no schema shows."""
    args = stage["args"]
    for name in INTERVALS:
        steps = args.get(name)
        if steps is not None and steps > 1 and steps != int(steps):
            wanted = "a whole number, or less than 1 for a share of all steps"
            raise UserError(f"args.{name}: expected {wanted}, got {steps}")
    strategy = args.get("save_strategy", "steps")
    if strategy not in SAVING:
        raise UserError(
            f"args.save_strategy: {strategy}: a stage that is killed would begin anew; "
            f"expected {' or '.join(SAVING)}"
        )
    evaluating = {
        "eval_strategy": args.get("eval_strategy", "no") != "no",
        "eval_on_start": args.get("eval_on_start"),
    }
    for name, asked in evaluating.items():
        if asked and stage["run"] not in HOLDING_OUT:
            raise UserError(
                f"args.{name}: a stage {stage['run']} holds no data out; remove it, or write evaluate_every"
            )
