"""The table of arms: every evaluated checkpoint by every metric."""

import math
from collections.abc import Mapping

import pandas as pd

from analysis.numbers.means import DASH, LENGTHS, average, number, with_interval
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.numbers.tasks import PREFERENCES, WITH_INTERVALS, largest, measure, row_name, tasks
from encore.recipe.metric_names import OF_TOOL


def _best_templates(run: Run, table: pd.DataFrame) -> set[tuple[str, str, str]]:
    """Return (arm, checkpoint, task) of each task whose template is the best for the same problems."""
    best = set()
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            groups: dict[str, list[tuple[float, str, str]]] = {}
            for name, task in tasks(run, arm, checkpoint).items():
                mean = average(measured(table, f"{arm}/{checkpoint}", f"{name}/accuracy")).value
                key = task.task.model_dump_json() if task.task else str(task.lm_eval)
                rank = -1.0 if math.isnan(mean) else mean
                form = str(task.template or task.chat or "")
                groups.setdefault(key, []).append((rank, name, form))
            several = (group for group in groups.values() if len({form for *_, form in group}) > 1)
            best |= {(arm, checkpoint, max(group)[1]) for group in several}
    return best


def levels(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of arms, with a row for each checkpoint and task and columns for each metric.

    A checkpoint that arms share has one row, under the first of them.
    """
    best, seen, rows = _best_templates(run, table), set(), []
    compared: dict[str, str] = {}  # task -> the metric that a checkpoint must have to get a row
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            for task in tasks(run, arm, checkpoint):
                by = compared.setdefault(task, f"{task}/{measure(table, task)}")
                numbers = measured(table, f"{arm}/{checkpoint}", by)
                key = (task, *numbers.source)
                if not len(numbers) or key in seen:
                    continue
                seen.add(key)
                means = {
                    column: average(measured(table, f"{arm}/{checkpoint}", metric))
                    for column, metric in _columns(table, task).items()
                }
                columns: dict[str, float] = {}
                for column, mean in means.items():
                    columns |= mean.columns(column, f"{column}_")
                rows.append(
                    {"arm": arm, "checkpoint": checkpoint, "task": task}
                    | {
                        "best_template": (arm, checkpoint, task) in best,
                        "models": run.models(arm, checkpoint, numbers.index),
                    }
                    | {"over": next((mean.over for mean in means.values() if mean.over), "")}
                    | columns
                )
    return pd.DataFrame(rows)


def _columns(table: pd.DataFrame, task: str) -> dict[str, str]:
    """Return each column's name -> the metric that it shows, for one task."""
    metrics = set(table.metric)
    columns = {leaf: f"{task}/{leaf}" for leaf in PREFERENCES if f"{task}/{leaf}" in metrics}
    columns |= {"accuracy": f"{task}/accuracy"}
    for name in ("pass", "maj"):
        metric = largest(table, task, name)
        if metric:
            columns[metric.rpartition("/")[2]] = metric
    of_tool = [leaf for leaf in OF_TOOL if f"{task}/{leaf}" in metrics]
    leaves = (*of_tool, "format_rate", "truncation_rate", *LENGTHS)
    return columns | {leaf: f"{task}/{leaf}" for leaf in leaves}


def levels_shown(run: Run, frame: pd.DataFrame, by: Mapping[tuple[str, str, str], str]) -> pd.DataFrame:
    """Return the table of arms for readers, with a mark at the best of several templates.

    `by` maps (arm, checkpoint, task) to the best of a base model's candidate templates.
    """
    rows = []
    names = [column.removesuffix("_low") for column in frame.columns if column.endswith("_low")]
    if "format_rate" in names and not frame.format_rate.any():  # no arm was asked for a format
        names.remove("format_rate")
    for row in frame.to_dict("records"):
        template = by.get((row["arm"], row["checkpoint"], row["task"]), "")
        best = f" (best template: {template})" if template else " (best template)" * row["best_template"]
        out = {"checkpoint": row_name(run, row) + best}
        for name in names:
            cell = number(row[name], name)
            if name in WITH_INTERVALS:
                cell = with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
            out[name.replace("_", " ")] = cell
        rows.append(out | {"models": row["models"]})
    return pd.DataFrame(rows).fillna(DASH)
