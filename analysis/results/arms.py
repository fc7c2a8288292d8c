"""The report's tables as data frames, and their CSV, Markdown, LaTeX and HTML files.

A frame with numbers goes to CSV; its `shown` form, with numbers as a reader wants them, to the other formats.
"""

from analysis.numbers.tasks import PREFERENCES
from analysis.numbers.tasks import SHOWN_WHOLE
from analysis.numbers.tasks import largest
from analysis.numbers.tasks import measure
from analysis.numbers.tasks import row_name
from analysis.numbers.tasks import tasks
import json
import math
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from great_tables import GT

from analysis.verdicts import claims
from analysis.numbers.means import DASH
from analysis.numbers.means import LENGTHS
from analysis.numbers.means import MINUS
from analysis.numbers.means import Mean
from analysis.numbers.means import average
from analysis.numbers.means import number
from analysis.numbers.means import shown
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from recipes.spec.graph import Node











def best_templates(run: Run, table: pd.DataFrame) -> set[tuple[str, str, str]]:
    """(arm, checkpoint, task) of the best template, wherever one set of problems is asked in several."""
    best = set()
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            groups: dict[str, list[tuple[float, str, str]]] = {}
            for name, task in tasks(run, arm, checkpoint).items():
                mean = average(measured(table, f"{arm}/{checkpoint}", f"{name}/accuracy")).value
                key = json.dumps(task.get("task") or task.get("lm_eval"), sort_keys=True)
                rank = -1.0 if math.isnan(mean) else mean
                groups.setdefault(key, []).append((rank, name, task.get("template", "")))
            several = (group for group in groups.values() if len({template for *_, template in group}) > 1)
            best |= {(arm, checkpoint, max(group)[1]) for group in several}
    return best


def arms(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Arms x metrics. A checkpoint that arms share appears once, under the arm that owns it."""
    best, seen, rows = best_templates(run, table), set(), []
    compared: dict[str, str] = {}  # task -> the metric it is there by
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            for task in tasks(run, arm, checkpoint):
                by = compared.setdefault(task, f"{task}/{measure(table, task)}")
                found = measured(table, f"{arm}/{checkpoint}", by)
                key = (task, *found.source)
                if not len(found) or key in seen:
                    continue
                seen.add(key)
                row: dict[str, Any] = {"arm": arm, "checkpoint": checkpoint, "task": task}
                row["best_template"] = (arm, checkpoint, task) in best
                row["models"] = found.source.nunique()
                for column, metric in _columns(table, task).items():
                    mean = average(measured(table, f"{arm}/{checkpoint}", metric))
                    row |= {column: mean.value, f"{column}_low": mean.low, f"{column}_high": mean.high}
                    row["over"] = row.get("over") or mean.over
                rows.append(row)
    return pd.DataFrame(rows)




def _columns(table: pd.DataFrame, task: str) -> dict[str, str]:
    """Column name -> metric."""
    there = set(table.metric)
    columns = {leaf: f"{task}/{leaf}" for leaf in PREFERENCES if f"{task}/{leaf}" in there}
    columns |= {"accuracy": f"{task}/accuracy"}
    for name in ("pass", "maj"):
        metric = largest(table, task, name)
        if metric:
            columns[metric.rpartition("/")[2]] = metric
    leaves = ("format_rate", "truncation_rate", *LENGTHS)
    return columns | {leaf: f"{task}/{leaf}" for leaf in leaves}


def arms_shown(run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    """The same for a reader: accuracy with its interval, the best template of several marked."""
    rows = []
    names = [column.removesuffix("_low") for column in frame.columns if column.endswith("_low")]
    if "format_rate" in names and not frame.format_rate.any():  # nobody was asked for a format
        names.remove("format_rate")
    for row in frame.to_dict("records"):
        out = {"checkpoint": row_name(run, row) + (" (best template)" if row["best_template"] else "")}
        for name in names:
            whole = Mean(row[name], row[f"{name}_low"], row[f"{name}_high"], 1, "")
            out[name.replace("_", " ")] = shown(whole) if name in SHOWN_WHOLE else number(row[name], name)
        rows.append(out | {"models": row["models"]})
    return pd.DataFrame(rows).fillna(DASH)




















