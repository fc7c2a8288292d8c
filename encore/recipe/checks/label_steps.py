"""Which roles and keys of a stage `label_steps` go together; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError

OF_ROLLOUTS = ("args", "estimation", "backend", "backend_args", "dtype", "batch_size", "model")
OF_DATASETS = ("task", "template", "problems")
NEEDED_ARGS = ("num_generations", "temperature", "top_p", "max_completion_length")


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first keys of a resolved `label_steps` stage that do not go together."""
    by, needs = stage["by"], stage.get("needs", {})
    others = OF_DATASETS if by == "rollouts" else OF_ROLLOUTS
    for key in others:
        if key in stage:
            raise UserError(f"{key}: by: {by} does not use it; remove it")
    if by == "dataset":
        if needs:
            raise UserError(f"needs.{next(iter(needs))}: by: dataset does not use it; remove it")
        for key in ("task", "template"):
            if key not in stage:
                raise UserError(f"{key}: missing; by: dataset needs {' and '.join(OF_DATASETS[:2])}")
        return
    if "data" not in needs:
        raise UserError("needs.data: missing; by: rollouts goes on from the steps of its samples")
    for name in NEEDED_ARGS:
        if name not in stage.get("args", {}):
            raise UserError(f"args.{name}: missing; by: rollouts needs {', '.join(NEEDED_ARGS)}")
