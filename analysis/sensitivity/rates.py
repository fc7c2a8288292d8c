"""The shares of right answers of a run's models with every protocol of `evals.sensitivity`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.numbers.run import Run
from encore.recipe.evals import Evals
from encore.recipe.sensitivity import Protocol, evaluation_name

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rates:
    """The shares of right answers (protocols, problems) before and after training, for one seed."""

    protocols: Sequence[Protocol]
    before: Floats
    after: Floats


def of(run: Run) -> Evals | None:
    """Return the evaluations of the recipe's first arm.

    The result is None if they have no `sensitivity`, or if the run does not begin with this arm.
    """
    evals = run.recipe.evals(run.scale, run.arms[0])
    return evals if evals.sensitivity and run.arms[0] == run.recipe.arms(run.scale)[0] else None


def read_rates(run: Run) -> Rates | None:
    """Return the rates of the recipe's first seed, from the samples of its evaluations.

    They cover the protocols with which both models were measured, and the problems that all of these
    measurements share. The result is None if the recipe has no `sensitivity`, or nothing was measured.
    """
    evals = of(run)
    if evals is None:
        return None
    asked = evals.protocols
    shares: dict[
        tuple[str, str, str], dict[int, float]
    ] = {}  # (checkpoint, backend, task) -> share of right answers by problem
    for end in evals.ends:
        for backend in dict.fromkeys(protocol.backend for protocol in asked):
            place = run.evaluation(run.arms[0], evaluation_name(end, backend), run.recipe.first_seed)
            for row in run.samples(run.graph.owner(place)):
                by_problem = shares.setdefault((end, backend, row["task"]), {})
                by_problem[row["item"]] = float(np.mean(row["correct"]))
    sides = [
        {p: shares[end, p.backend, p.task] for p in asked if (end, p.backend, p.task) in shares}
        for end in evals.ends
    ]
    measured = [p for p in asked if all(p in side for side in sides)]
    if not measured:
        return None
    shared = sorted(set.intersection(*(set(side[p]) for side in sides for p in measured)))
    before, after = ([[side[p][problem] for problem in shared] for p in measured] for side in sides)
    return Rates(measured, np.array(before), np.array(after)) if shared else None
