"""The evaluation tasks of a run, and the metrics that they measure."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from analysis.numbers.means import Mean, average
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from encore.recipe.eval_tasks import EvalTask

# arms are compared by the first of these that was measured
MEASURES = {"gold": "gold reward", "accuracy": "accuracy", "proxy": "reward of the reward model"}
PREFERENCES = ("gold", "win_rate", "proxy", "kl")  # metrics that only preference learning has
WITH_INTERVALS = ("accuracy", "gold", "win_rate")  # metrics shown with their intervals


def largest(table: pd.DataFrame, task: str, name: str) -> str | None:
    """Return the measured metric `task/name@k` with the largest k; None if there is none.

    For `pass` it is `heldout/pass@16` if pass@1 and pass@16 were measured.
    """
    names = table.metric[table.metric.str.startswith(f"{task}/{name}@") & table.step.isna()].unique()
    return max(names, key=lambda metric: int(metric.rpartition("@")[2]), default=None)


def by_count(table: pd.DataFrame, at: str, name: str) -> dict[int, Mean]:
    """Return n -> the mean of the metric `<name>@<n>` at `at`, an `arm/checkpoint`, by rising n."""
    arm, _, node = at.partition("/")
    rows = table[(table.arm == arm) & (table.node == node)]
    names = rows.metric[rows.metric.str.startswith(f"{name}@")].unique()
    means = {int(metric.rpartition("@")[2]): average(measured(table, at, metric)) for metric in names}
    return {n: mean for n, mean in sorted(means.items()) if mean.n}


def tasks(run: Run, arm: str, checkpoint: str) -> dict[str, EvalTask]:
    """Return the evaluation tasks of one checkpoint, by name."""
    return run.graph.evaluation(run.graph.owner(run.evaluation(arm, checkpoint))).tasks


def headline(run: Run) -> str:
    """Return the headline task, which the summary is about: the last checkpoint's first task; "" if none."""
    return next((task for end in run.ends[-1:] for task in tasks(run, run.arms[0], end)), "")


def measure(table: pd.DataFrame, task: str) -> str:
    """Return the metric that arms are compared by on a task: the first of MEASURES that was measured.

    The result is `accuracy` if none was.
    """
    names = set(table.metric[table.step.isna()])
    return next((name for name in MEASURES if f"{task}/{name}" in names), "accuracy")


def row_name(run: Run, row: Mapping[Hashable, Any]) -> str:
    """Return `arm/checkpoint` of a row of the table of arms, and its task unless it is the headline task."""
    where = f"{row['arm']}/{row['checkpoint']}"
    return where if row["task"] == headline(run) else f"{where}, {row['task']}"
