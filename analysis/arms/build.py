"""The numbers of section "results": how well every checkpoint does."""

from dataclasses import dataclass

import pandas as pd

from analysis.arms import levels, selectors, templates, uncertainty
from analysis.numbers.run import Run


@dataclass(frozen=True)
class Arms:
    """The tables of the final numbers of every checkpoint; a table is empty if the run has no data for it."""

    levels: pd.DataFrame
    best_of_n: pd.DataFrame
    templates: pd.DataFrame
    uncertainty: pd.DataFrame


def build(run: Run, numbers: pd.DataFrame) -> Arms:
    """Return the tables of section "results", from the final numbers of a run."""
    rows = levels.levels(run, numbers)
    return Arms(
        rows,
        selectors.selectors(run, numbers),
        templates.templates(run, numbers),
        run.kept("uncertainty", lambda: uncertainty.parts(run, numbers, rows), text=True),
    )
