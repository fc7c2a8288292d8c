"""The alignment tax (the loss of accuracy on tasks that training did not aim at), and win rates by task."""

import math
from collections.abc import Sequence

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.means import DASH, average, with_interval
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.page.interval_rows import paired
from analysis.preferences.contenders import Contender, own_start
from analysis.statistics.intervals import interval
from encore.recipe.metric_names import OF_LM_EVAL


def _taxed(run: Run, table: pd.DataFrame, task: str, among: Sequence[Contender]) -> list[str]:
    """Return the tasks that training did not aim at: evaluated with accuracy, but without gold reward."""
    asked = dict.fromkeys(
        name
        for contender in among
        for name in tasks.tasks(run, contender.arm, contender.checkpoint)
        if name != task
    )
    metrics = set(table.metric[table.step.isna()])
    return [name for name in asked if f"{name}/accuracy" in metrics and f"{name}/gold" not in metrics]


def tax(
    run: Run, table: pd.DataFrame, task: str, among: Sequence[Contender], start: Contender | None
) -> pd.DataFrame:
    """Return a row for each contender and task of _taxed(): accuracy, and its change since the start.

    The start is the counterpart of `start` in the contender's arm. The change is paired by seed. For a task
    of lm-eval the metric is the one that the recipe names, such as DROP's F1.
    """
    rows, metrics = [], set(table.metric)
    for name in _taxed(run, table, task, among):
        lm_eval_metric = f"{name}/{OF_LM_EVAL}"
        metric = lm_eval_metric if lm_eval_metric in metrics else f"{name}/accuracy"
        for contender in among:
            mean = average(measured(table, contender.at, metric))
            if not mean.n:
                continue
            row = {"policy": contender.name, "task": name} | mean.columns("accuracy")
            begun = own_start(run, contender, start) if start else contender
            change = paired(table, contender.at, begun.at, metric) if begun.at != contender.at else []
            if change:
                low, high = interval(change) if len(change) > 1 else (math.nan, math.nan)
                row |= {"since": begun.checkpoint, "change": sum(change) / len(change)}
                row |= {"change_low": low, "change_high": high}
            rows.append(row)
    columns = ["policy", "task", "accuracy", "low", "high", "since", "change", "change_low", "change_high"]
    return pd.DataFrame(rows, columns=columns)


def tax_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of tax() for readers: a row for each policy, and two columns for each task."""
    start = next(iter(frame.since.dropna()), "the start")
    rows: dict[str, dict[str, str]] = {}
    for entry in frame.to_dict("records"):
        row = rows.setdefault(entry["policy"], {"": entry["policy"]})
        row[entry["task"]] = with_interval(entry["accuracy"], entry["low"], entry["high"])
        change = with_interval(entry["change"], entry["change_low"], entry["change_high"])
        row[f"{entry['task']}, less that of {start}"] = change
    return pd.DataFrame(list(rows.values())).fillna(DASH)


def by_task(table: pd.DataFrame, task: str, asked: Sequence[str], among: Sequence[Contender]) -> pd.DataFrame:
    """Return a row for each contender and task: its win rate against the world's own replies.

    The table has no rows if no task but `task` has win rates.
    """
    rows = []
    for name in asked:
        rates = {
            contender.name: average(measured(table, contender.at, f"{name}/win_rate")) for contender in among
        }
        rates = {policy: mean for policy, mean in rates.items() if mean.n}
        if len(rates) > 1:
            rows += [
                {"policy": policy, "task": name} | mean.columns("win_rate") for policy, mean in rates.items()
            ]
    several = len({row["task"] for row in rows} | {task}) > 1
    return pd.DataFrame(rows if several else [], columns=["policy", "task", "win_rate", "low", "high"])


def by_task_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of by_task() for readers: a row for each policy, a column for each task."""
    rows: dict[str, dict[str, str]] = {}
    for entry in frame.to_dict("records"):
        cell = with_interval(entry["win_rate"], entry["low"], entry["high"])
        rows.setdefault(entry["policy"], {"": entry["policy"]})[entry["task"]] = cell
    return pd.DataFrame(list(rows.values())).fillna(DASH)
