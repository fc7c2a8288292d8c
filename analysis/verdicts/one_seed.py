"""The difference of a claim over the problems of an evaluation, for a run of one seed.

One training run cannot say how another would end, so with one seed every claim stays open. But the run's
evaluations put the same problems to both sides of a claim. The interval here is over these problems, paired.
It holds for the weights of this one run, and decides no claim.

A difference exists if the claim's metric is a plain mean over problems on both sides (`heldout/accuracy`, not
the length of right answers nor a number of training), and both sides were asked the same problems. Several
samples of a problem are averaged first. The interval is a 95% percentile bootstrap over problems.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd

from analysis.numbers.means import with_interval
from analysis.numbers.run import Row, Run
from analysis.numbers.table import measured
from analysis.verdicts.claims import Verdict
from encore.recipe.claims import Side
from evals.metrics import ratios
from evals.passk import Floats, interval, resamples

Problem = tuple[int, str]  # number and question
ByProblem = dict[Problem, float]  # problem -> the metric's value
# the problems of a task, and metric -> its numerator and denominator, each (problems,)
Known = tuple[list[Problem], dict[str, tuple[Floats, Floats]]]


@dataclass(frozen=True)
class Difference:
    """A difference between two sides over the same problems, with the ends of its 95% interval."""

    metric: str
    value: float
    low: float
    high: float
    problems: int

    def __str__(self) -> str:
        """Return `these weights: higher by 0.120 [0.080, 0.160] on 256 problems`."""
        numbers = (self.value, self.low, self.high)
        if self.low > 0:
            text = f"higher by {with_interval(*numbers, self.metric)}"
        elif self.high < 0:
            lower = (-self.value, -self.high, -self.low)
            text = f"lower by {with_interval(*lower, self.metric)}"
        else:
            text = f"no clear difference, {with_interval(*numbers, self.metric)}"
        return f"these weights: {text} on {self.problems} problems"


def differences(run: Run, numbers: pd.DataFrame, verdicts: Iterable[Verdict]) -> dict[str, Difference]:
    """Return the id of a claim -> its difference over problems; {} if the run has several seeds.

    Claims without this difference are left out. `numbers` are the final numbers that the claims compare.
    """
    if len(run.seeds) != 1:
        return {}
    known = cache(partial(_known, cache(partial(_samples, run))))
    by_claim = {}
    for verdict in (verdict for verdict in verdicts if verdict.n):
        sides = run.document.claims[verdict.id].test.sides
        values = [_by_problem(run, numbers, side, known) for side in sides]
        if len(values) == 2 and values[0] and values[0].keys() == values[1].keys():
            paired = np.array([values[0][problem] - values[1][problem] for problem in values[0]])
            estimate = interval(paired, np.ones(len(paired)), resamples(len(paired)))
            by_claim[verdict.id] = Difference(verdict.metric, *estimate, len(paired))
    return by_claim


def _by_problem(run: Run, numbers: pd.DataFrame, side: Side, known: Callable[..., Known]) -> ByProblem:
    """Return the metric of one side for each problem.

    The result is {} if the metric is not a plain mean over problems, or if the problems were not kept.
    `known` is `_known` of the run's samples.
    """
    of_seed = measured(numbers, side.place, side.metric).loc[[*run.seeds]]
    task, _, name = side.metric.partition("/")
    problems, metrics = known(str(of_seed.source.iloc[0]), task, int(name.partition("@")[2] or 0))
    values, weights = metrics.get(name, (np.array([]), np.array([])))
    by_problem = dict(zip(problems, values.tolist(), strict=False))
    whole = len(by_problem) == len(values) > 0 and (weights == 1).all()
    # the number that the claim compares must be the mean of these samples
    same = whole and math.isclose(values.mean(), float(of_seed.value.iloc[0]), abs_tol=1e-6)
    return by_problem if same else {}


def _samples(run: Run, source: str) -> list[Row]:
    """Return the rows of the evaluation with the artefact `source`; [] if they were not kept."""
    nodes = (node for node in run.all_nodes() if node.kind == "eval" and node.sentinel == source)
    return [row for node in nodes for row in run.samples(node)]


def _known(samples: Callable[[str], list[Row]], source: str, task: str, k: int) -> Known:
    """Return the problems of a task, and the task's metrics with the k of pass@k (0 without k).

    `samples` returns the rows of an artefact, such as `source`. Without rows there are no problems.
    """
    rows = [row for row in samples(source) if row["task"] == task]
    drawn = min((len(row["correct"]) for row in rows), default=0)  # samples of a problem
    metrics = ratios(rows, (k,) if 0 < k <= drawn else ()) if rows else {}
    return [(row["item"], row["question"]) for row in rows], metrics
