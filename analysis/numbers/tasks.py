"""The evaluation tasks of a run, and what is measured by them."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from analysis.numbers.means import Mean, average
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from encore.recipe.eval_tasks import EvalTask

# what arms are compared by: the first of these that was measured
MEASURES = {"gold": "gold reward", "accuracy": "accuracy", "proxy": "reward of the reward model"}
PREFERENCES = ("gold", "win_rate", "proxy", "kl")  # metrics that only preference learning has
WITH_INTERVALS = ("accuracy", "gold", "win_rate")  # metrics shown with their intervals


def largest(table: pd.DataFrame, task: str, name: str) -> str | None:
    """`pass@16` of pass@1, pass@4, pass@16: the measured metric of this name with the largest k."""
    names = table.metric[table.metric.str.startswith(f"{task}/{name}@") & table.step.isna()].unique()
    return max(names, key=lambda metric: int(metric.rpartition("@")[2]), default=None)


def by_count(table: pd.DataFrame, at: str, name: str) -> dict[int, Mean]:
    """n -> the mean of the metric `<name>@<n>` at `arm/checkpoint`, by rising n; without those of nothing."""
    arm, _, node = at.partition("/")
    here = table[(table.arm == arm) & (table.node == node)]
    names = here.metric[here.metric.str.startswith(f"{name}@")].unique()
    means = {int(metric.rpartition("@")[2]): average(measured(table, at, metric)) for metric in names}
    return {n: mean for n, mean in sorted(means.items()) if mean.n}


def tasks(run: Run, arm: str, checkpoint: str) -> dict[str, EvalTask]:
    """The evaluation tasks of one checkpoint, by name."""
    return run.graph.evaluation(run.graph.owner(run.evaluation(arm, checkpoint))).tasks


def headline(run: Run) -> str:
    """The task that the summary is about: the last checkpoint's first; empty where nothing is evaluated."""
    return next((task for end in run.ends[-1:] for task in tasks(run, run.arms[0], end)), "")


def measure(table: pd.DataFrame, task: str) -> str:
    """What arms are compared by on a task: the first of MEASURES that was measured, else accuracy."""
    there = set(table.metric[table.step.isna()])
    return next((name for name in MEASURES if f"{task}/{name}" in there), "accuracy")


def row_name(run: Run, row: Mapping[Hashable, Any]) -> str:
    """`arm/checkpoint` of a row of the table of arms, with the task where it is not the headline's."""
    where = f"{row['arm']}/{row['checkpoint']}"
    return where if row["task"] == headline(run) else f"{where}, {row['task']}"
