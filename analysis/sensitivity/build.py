"""The numbers of section "sensitivity": the gain of training by every protocol of evaluation."""

from dataclasses import dataclass

import pandas as pd

from analysis.numbers.run import Run
from analysis.sensitivity import estimates, rates


@dataclass(frozen=True)
class Sensitivity:
    """The gain of training by every protocol, and what each choice of a protocol adds or takes away."""

    task: str
    protocols: pd.DataFrame  # rows of estimates.by_protocol()
    choices: pd.DataFrame  # rows of estimates.by_choice()


def build(run: Run) -> Sensitivity | None:
    """Return the tables; None if the run asks for no sensitivity or has not measured it."""
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
