"""The numbers of section "sensitivity": the gain of training, measured with every evaluation protocol."""

from dataclasses import dataclass

import pandas as pd

from analysis.numbers.run import Run
from analysis.sensitivity import estimates, rates


@dataclass(frozen=True)
class Sensitivity:
    """The gain of training with every protocol, and the effect of each choice of a protocol on the gain."""

    task: str
    protocols: pd.DataFrame  # the table of estimates.by_protocol()
    choices: pd.DataFrame  # the table of estimates.by_choice()


def build(run: Run) -> Sensitivity | None:
    """Return the tables of a run; None if its recipe has no `sensitivity`, or if it was not measured."""
    evals = rates.of(run)
    if evals is None or evals.sensitivity is None:
        return None
    measured = rates.read_rates(run)
    protocols = run.kept(
        "sensitivity", lambda: estimates.by_protocol(measured) if measured else pd.DataFrame()
    )
    choices = run.kept(
        "sensitivity_choices", lambda: estimates.by_choice(measured) if measured else pd.DataFrame()
    )
    return Sensitivity(evals.sensitivity.task, protocols, choices) if len(protocols) else None
