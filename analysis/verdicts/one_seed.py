"""The difference of a claim over the problems of an evaluation, for a run of one seed.

One training run cannot say how another would end, so with one seed every claim stays open. But the run's
evaluations put the same problems to both sides of a claim. The interval here is over these problems, paired.
It holds for the weights of this one run, and decides no claim.

A difference exists if the claim's metric is a plain mean over problems on both sides (`heldout/accuracy`, not
the length of right answers nor a number of training), and both sides were asked the same problems. Several
samples of a problem are averaged first. The interval is a 95% percentile bootstrap over problems.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.numbers.means import with_interval
from analysis.numbers.run import Row, Run
from analysis.numbers.table import measured
from analysis.verdicts.claims import Verdict
from encore.recipe.claims import Side
from evals.metrics import ratios
from evals.passk import interval, resamples

ByProblem = dict[tuple[int, str], float]  # (number, question) of a problem -> the metric's value


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
    samples: dict[str, list[Row]] = {}  # artefact -> the rows of its problems
    by_claim = {}
    for verdict in (verdict for verdict in verdicts if verdict.n):
        sides = run.document.claims[verdict.id].test.sides
        values = [_by_problem(run, numbers, side, samples) for side in sides]
        if len(values) == 2 and values[0] and values[0].keys() == values[1].keys():
            paired = np.array([values[0][problem] - values[1][problem] for problem in values[0]])
            estimate = interval(paired, np.ones(len(paired)), resamples(len(paired)))
            by_claim[verdict.id] = Difference(verdict.metric, *estimate, len(paired))
    return by_claim


def _by_problem(run: Run, numbers: pd.DataFrame, side: Side, samples: dict[str, list[Row]]) -> ByProblem:
    """Return the metric of one side for each problem.

    The result is {} if the metric is not a plain mean over problems, or if the problems were not kept.
    `samples` caches the rows of artefacts that were read.
    """
    of_seed = measured(numbers, side.place, side.metric).loc[[*run.seeds]]
    source, mean = str(of_seed.source.iloc[0]), float(of_seed.value.iloc[0])
    if source not in samples:
        evaluations = (node for node in run.all_nodes() if node.kind == "eval")
        node = next((node for node in evaluations if node.sentinel == source), None)
        samples[source] = list(run.samples(node)) if node else []
    task, _, name = side.metric.partition("/")
    rows = [row for row in samples[source] if row["task"] == task]
    k = int(name.partition("@")[2] or 0)
    drawn = min((len(row["correct"]) for row in rows), default=0)  # samples of a problem
    known = ratios(rows, (k,) if 0 < k <= drawn else ()) if rows else {}
    values, weights = known.get(name, (np.array([]), np.array([])))
    by_problem = {(row["item"], row["question"]): float(x) for row, x in zip(rows, values, strict=False)}
    whole = len(by_problem) == len(values) > 0 and (weights == 1).all()
    # the number that the claim compares must be the mean of these samples
    return by_problem if whole and math.isclose(values.mean(), mean, abs_tol=1e-6) else {}
