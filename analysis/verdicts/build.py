"""The numbers of section "verdicts": the paper's claims, judged by this run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.numbers.run import Run
from analysis.verdicts import collapse, dials, gates, one_seed
from analysis.verdicts.claims import Verdict
from analysis.verdicts.decision import judge_run


@dataclass(frozen=True)
class Verdicts:
    """The verdict on every claim, and the numbers behind it."""

    history: Sequence[
        Sequence[Verdict]
    ]  # for each planned look that was reached, the verdicts on all claims; before the first look, one entry
    gates: pd.DataFrame
    collapses: pd.DataFrame
    dials: pd.DataFrame
    # of a run of one seed: id of a claim -> its difference over problems, which decides nothing
    over_problems: Mapping[str, one_seed.Difference]

    @property
    def last(self) -> Sequence[Verdict]:
        """The verdicts at the last look that the run has reached."""
        return self.history[-1]


def build(run: Run, numbers: pd.DataFrame) -> Verdicts:
    """Judge the claims of a run by its final numbers."""
    judged = numbers[numbers.seed.isin(run.seeds)]
    history = judge_run(run, numbers)
    return Verdicts(
        history,
        gates.table(run, numbers),
        collapse.rates(run, judged),
        dials.dials(run),
        one_seed.differences(run, numbers, history[-1]),
    )
