"""The thresholds of a `rejection_sampling` stage; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore import worlds
from encore.errors import UserError, known

COMMON = ("format", "english")  # of rewards/rules.py, that every task has
IN_DEVIATIONS = ("gold", "judge")  # rewards in standard deviations; all others are from 0 to 1


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first of `keep` that is no reward of the task, or lets all or nothing pass."""
    world = worlds.of_task(stage["task"])
    thresholds = stage.get("keep", {})
    known("keep", thresholds, [*COMMON, *(world.rewards if world else {})], "reward", as_key=True)
    for name, least in thresholds.items():
        if name not in IN_DEVIATIONS and not 0 < least <= 1:
            raise UserError(f"keep.{name}: expected more than 0 and at most 1, got {least:g}")
