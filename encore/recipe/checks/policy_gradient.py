"""Keys of a `policy_gradient` stage that contradict each other; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore.objectives.deltas import check_group


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError where a resolved stage's delta compares more responses than there are."""
    check_group(stage["args"]["delta"], stage["args"]["num_generations"])
