"""Preconditions: a claim about a mechanism is judged only where the mechanism was at work.

A recipe names the quantities in `gates` (clip_cuts: the share of tokens that the upper clip cuts, of the base
arm) and a claim the value it needs (`needs: clip_cuts >= 0.02`). Judged by the mean over seeds.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from analysis.verdicts.pairs import pairs
from recipes.spec.gates import met, needs


def absent(
    claim: Mapping[str, Any],
    places: Mapping[str, Mapping[str, Any]],
    table: pd.DataFrame,
    scale: str,
    seeds: Iterable[int],
) -> str:
    """Which precondition of a claim is not met, and what was measured; empty where all are."""
    for need in needs(claim):
        gate = places[need.gate]
        measured = pairs(gate, table, scale, seeds)
        if not measured.seeds:
            return f"its precondition {need} was not measured: {'; '.join(measured.notes)}"
        value = sum(measured.differences) / len(measured.differences)
        if not met(value, need, gate.get("target")):
            return f"the precondition is absent ({need.gate} is {value:.3g}, needed: {need})"
    return ""
