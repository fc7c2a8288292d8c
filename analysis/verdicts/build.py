"""The numbers of section "verdicts": the paper's claims, judged by this run."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.numbers.run import Run
from analysis.verdicts import collapse, dials, gates
from analysis.verdicts.claims import Verdict
from analysis.verdicts.decision import judge_run


@dataclass(frozen=True)
class Verdicts:
    """The verdict on every claim, and the numbers behind it."""

    history: Sequence[
        Sequence[Verdict]
    ]  # every claim's verdict at each planned look, and in the last entry with all seeds
    gates: pd.DataFrame
    collapses: pd.DataFrame
    dials: pd.DataFrame

    @property
    def last(self) -> Sequence[Verdict]:
        """The verdicts at the last look, with all seeds."""
        return self.history[-1]


def build(run: Run, numbers: pd.DataFrame) -> Verdicts:
    """Judge the claims of a run by its final numbers."""
    judged = numbers[numbers.seed.isin(run.seeds)]
    return Verdicts(
        judge_run(run, numbers), gates.table(run, numbers), collapse.rates(run, judged), dials.dials(run)
    )
