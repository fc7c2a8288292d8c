"""Preconditions: a claim about a mechanism is judged only if the mechanism was at work.

A recipe names quantities in `gates`, such as clip_cuts, the share of tokens that the upper clip cuts in the
base arm. A claim names the value it needs (`needs: clip_cuts >= 0.02`). The mean over seeds decides.
"""

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from analysis.numbers.means import DASH, MINUS
from analysis.numbers.run import Run
from analysis.verdicts.pairs import Pairs, pairs
from encore.recipe.claims import Claim, Gate, Need


def absent(
    claim: Claim,
    places: Mapping[str, Gate],
    table: pd.DataFrame,
    seeds: Iterable[int],
) -> str:
    """Return a text on the first precondition of a claim that is not met; "" if all are met.

    `places` are the recipe's gates by name, and `table` has the final numbers.
    """
    for need in claim.needs:
        gate = places[need.gate]
        measured = pairs(gate, table, seeds)
        what, needed = gate.about or _measured(gate), gate.needed(need)
        if not measured.seeds:
            return f"a precondition was not measured ({what}: needed {needed}): {'; '.join(measured.notes)}"
        value = _mean(measured)
        if not gate.met(need, value):
            return f"a precondition is absent ({what}: measured {value:.3g}, needed {needed})"
    return ""


def _measured(gate: Gate) -> str:
    """Return the metric and the sides of a gate, such as `mean/kl: ppo/after`."""
    return f"{gate.metric}: {gate.of}" + (f" {MINUS} {gate.against}" if gate.against else "")


def _mean(measured: Pairs) -> float:
    return sum(measured.differences) / len(measured.differences)


def table(run: Run, numbers: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each precondition of the scale's claims: its measured value, and whether it is met."""
    rows = []
    places = run.document.gates
    for need, claims in _conditions(run).items():
        gate = places[need.gate]
        measured = pairs(gate, numbers, run.seeds)
        value = _mean(measured) if measured.seeds else math.nan
        rows.append(
            {
                "precondition": gate.about or need.gate,
                "needed": gate.needed(need),
                "measured": _measured(gate),
                "value": f"{value:.3g}" if measured.seeds else DASH,
                "met": "yes" if gate.met(need, value) else "no",
                "claims": ", ".join(claims),
            }
        )
    return pd.DataFrame(rows, columns=["precondition", "needed", "measured", "value", "met", "claims"])


def _conditions(run: Run) -> dict[Need, list[str]]:
    """Return each precondition -> the ids of the claims at the run's scale that need it."""
    by_need: dict[Need, list[str]] = {}
    for claim in run.recipe.claims(run.scale):
        for need in claim.needs:
            by_need.setdefault(need, []).append(claim.id)
    return by_need
