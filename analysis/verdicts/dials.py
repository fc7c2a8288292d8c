"""The table of a recipe's dials: on which seeds each was chosen, with how many trials, and the outcome."""

from collections.abc import Sequence

import pandas as pd

from analysis.numbers.means import DASH
from analysis.numbers.run import Run
from encore.recipe.document import DIAL_SEEDS

FEWEST = 3  # smallest number of seeds that choose a dial


def dials(run: Run) -> pd.DataFrame:
    """Return a row for each entry of the recipe's `dials`."""
    rows = []
    for entry in run.document.dials:
        trials = entry.trials or {}
        each = f"{next(iter(trials.values()))} of each of {', '.join(trials)}" if trials else "not recorded"
        rows.append(
            {
                "what": entry.what,
                "chosen on seeds": _seeds(entry.seeds),
                "trials": each,
                "sweep": entry.sweep or DASH,
                "outcome": entry.outcome,
            }
        )
    return pd.DataFrame(rows, columns=["what", "chosen on seeds", "trials", "sweep", "outcome"])


def _seeds(seeds: Sequence[int]) -> str:
    """Return the seeds as text, with a note if they are too few or not reserved for the choice of dials."""
    listed = ", ".join(map(str, seeds))
    return (
        listed
        if len(seeds) >= FEWEST and min(seeds) >= DIAL_SEEDS
        else f"{listed} (the rule: {FEWEST} or more, from {DIAL_SEEDS} on)"
    )
