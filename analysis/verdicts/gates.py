"""Preconditions: a claim about a mechanism is judged only where the mechanism was at work.

A recipe names the quantities in `gates` (clip_cuts: the share of tokens that the upper clip cuts, of the base
arm) and a claim the value it needs (`needs: clip_cuts >= 0.02`). Judged by the mean over seeds.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from analysis.numbers.means import DASH, MINUS
from analysis.numbers.run import Run
from analysis.verdicts.pairs import Pairs, pairs
from encore.recipe.gates import Need, met, needs
from encore.recipe.looks import claims_at


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
        value = _mean(measured)
        if not met(value, need, gate.get("target")):
            return f"the precondition is absent ({need.gate} is {value:.3g}, needed: {need})"
    return ""


def _mean(measured: Pairs) -> float:
    return sum(measured.differences) / len(measured.differences)


def table(run: Run, numbers: pd.DataFrame) -> pd.DataFrame:
    """A row for each condition that claims of the run's scale put on a gate, and whether it is met."""
    rows = []
    places = run.spec.get("gates", {})
    for need, claims in _conditions(run).items():
        gate = places[need.gate]
        measured = pairs(gate, numbers, run.scale, run.seeds)
        against = f" {MINUS} {gate['against']}" if "against" in gate else ""
        value = _mean(measured) if measured.seeds else math.nan
        rows.append(
            {
                "precondition": str(need),
                "what": gate.get("about", DASH),
                "measured": f"{gate['metric']}: {gate['of']}{against}",
                "value": f"{value:.3g}" if measured.seeds else DASH,
                "met": "yes" if met(value, need, gate.get("target")) else "no",
                "claims": ", ".join(claims),
            }
        )
    return pd.DataFrame(rows, columns=["precondition", "what", "measured", "value", "met", "claims"])


def _conditions(run: Run) -> dict[Need, list[str]]:
    """Condition -> the claims of the run's scale that need it."""
    by_need: dict[Need, list[str]] = {}
    for claim in claims_at(run.recipe, run.scale):
        for need in needs(claim):
            by_need.setdefault(need, []).append(claim["id"])
    return by_need
