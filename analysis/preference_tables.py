"""What preference learning learnt from, its labels, and what it was to leave alone, other tasks."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis import tables
from analysis.contenders import Contender, own_start
from analysis.means import DASH, Mean, average, number, shown
from analysis.rows import paired
from analysis.statistics import interval
from analysis.table import Run, measured

LABELS = "label"  # the stage kind
LEADING = ("pairs", "agreement", "accuracy")  # metrics a reader looks for first; what else there is follows
NOT_SHOWN = ("last", "last_fifth", "mean", "max")


def taxed(run: Run, table: pd.DataFrame, task: str, among: Sequence[Contender]) -> list[str]:
    """The tasks without gold that the contenders are evaluated on: those that training was not about."""
    asked = dict.fromkeys(
        name for who in among for name in tables.tasks(run, who.arm, who.checkpoint) if name != task
    )
    there = set(table.metric[table.step.isna()])
    return [name for name in asked if f"{name}/accuracy" in there and f"{name}/gold" not in there]


def tax(
    run: Run, table: pd.DataFrame, task: str, among: Sequence[Contender], start: Contender | None
) -> pd.DataFrame:
    """One row a contender and other task: accuracy, and that less its arm's own `start`, paired by seed."""
    rows = []
    for name in taxed(run, table, task, among):
        metric = f"{name}/accuracy"
        for who in among:
            mean = average(measured(table, who.at, metric))
            if not mean.n:
                continue
            row: dict[str, Any] = {"policy": who.name, "task": name, "accuracy": mean.value, "low": mean.low,
                                   "high": mean.high}  # fmt: skip
            begun = own_start(run, who, start) if start else who
            change = paired(table, who.at, begun.at, metric) if begun.at != who.at else []
            if change:
                low, high = interval(change) if len(change) > 1 else (math.nan, math.nan)
                row |= {"since": begun.checkpoint, "change": sum(change) / len(change)}
                row |= {"change_low": low, "change_high": high}
            rows.append(row)
    columns = ["policy", "task", "accuracy", "low", "high", "since", "change", "change_low", "change_high"]
    return pd.DataFrame(rows, columns=columns)


def tax_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a policy: each task's accuracy and what became of it since training began."""
    since = next(iter(frame.since.dropna()), "the start")
    rows: dict[str, dict[str, str]] = {}
    for one in frame.to_dict("records"):
        row = rows.setdefault(one["policy"], {"": one["policy"]})
        row[one["task"]] = shown(Mean(one["accuracy"], one["low"], one["high"], 1, ""))
        change = Mean(one["change"], one["change_low"], one["change_high"], 1, "")
        row[f"{one['task']}, less that of {since}"] = DASH if math.isnan(change.value) else shown(change)
    return pd.DataFrame(list(rows.values())).fillna(DASH)


def by_task(table: pd.DataFrame, task: str, asked: Sequence[str], among: Sequence[Contender]) -> pd.DataFrame:
    """One row a contender and task: win rate against the world's replies, if two tasks or more have one."""
    rows = []
    for name in asked:
        found = {who.name: average(measured(table, who.at, f"{name}/win_rate")) for who in among}
        found = {policy: mean for policy, mean in found.items() if mean.n}
        if len(found) > 1:
            rows += [{"policy": policy, "task": name, "win_rate": mean.value, "low": mean.low,
                      "high": mean.high} for policy, mean in found.items()]  # fmt: skip
    several = len({row["task"] for row in rows} | {task}) > 1
    return pd.DataFrame(rows if several else [], columns=["policy", "task", "win_rate", "low", "high"])


def by_task_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a policy, a column a task."""
    rows: dict[str, dict[str, str]] = {}
    for one in frame.to_dict("records"):
        cell = shown(Mean(one["win_rate"], one["low"], one["high"], 1, ""))
        rows.setdefault(one["policy"], {"": one["policy"]})[one["task"]] = cell
    return pd.DataFrame(list(rows.values())).fillna(DASH)


def labels(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """One row a distinct `label` stage and metric: who labelled, and what became of it, mean over seeds."""
    rows, seen = [], set()
    for arm in run.arms:
        for label, config in _stages(run, arm).items():
            here = table[(table.arm == arm) & (table.node == label) & table.step.isna()]
            key = tuple(sorted(here.source.unique()))
            if not len(here) or (key, label) in seen:
                continue
            seen.add((key, label))
            metrics = [metric for metric in here.metric.unique() if metric.partition("/")[0] not in NOT_SHOWN]
            for metric in sorted(metrics, key=_place):
                mean = average(measured(table, f"{arm}/{label}", metric))
                rows.append({"arm": arm, "stage": label, "by": _labeller(config), "metric": metric,
                             "value": mean.value, "low": mean.low, "high": mean.high})  # fmt: skip
    return pd.DataFrame(rows, columns=["arm", "stage", "by", "metric", "value", "low", "high"])


def _stages(run: Run, arm: str) -> dict[str, dict]:
    """Label stage -> its resolved config."""
    nodes = (node for node in run.nodes(arm, run.seeds[0]) if node.kind == "stage")
    found = {run.label(node): run.graph.config(node) for node in nodes}
    return {label: config for label, config in found.items() if config["run"] == LABELS}


def _place(metric: str) -> tuple[int, str]:
    first = metric.partition("/")[0]
    return (LEADING.index(first) if first in LEADING else len(LEADING), metric)


def _labeller(config: dict) -> str:
    """`annotator, agreement 0.75`."""
    dials = config.get("labeller") or {}
    return ", ".join([str(config.get("by", DASH)), *(f"{k.replace('_', ' ')} {v}" for k, v in dials.items())])


def labels_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a stage for a reader; counts that are 0 everywhere are left out."""
    there = [
        metric
        for metric in dict.fromkeys(frame.metric)
        if metric in ("agreement", "accuracy") or frame.value[frame.metric == metric].any()
    ]
    rows = []
    for (arm, stage, by), group in frame.groupby(["arm", "stage", "by"], sort=False):
        row = {"": f"{arm}/{stage}", "labelled by": by}
        values = group.set_index("metric")
        for metric in there:
            one = values.loc[metric] if metric in values.index else None
            row[metric.replace("_", " ")] = DASH if one is None else _cell(one)
        rows.append(row)
    return pd.DataFrame(rows).fillna(DASH)


def _cell(one: pd.Series) -> str:
    """A count as a count, a share with its interval."""
    if abs(one.value) >= 2 or float(one.value).is_integer():
        return f"{one.value:,.0f}"
    return shown(Mean(one.value, one.low, one.high, 1, "")) if not math.isnan(one.low) else number(one.value)
