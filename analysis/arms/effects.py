"""The effect of each arm: compared with the base arm, as a step of a ladder, or as a part left out."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
from scipy import stats

from analysis.numbers.means import Mean, average, number, shown
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.page import interval_rows
from analysis.statistics import intervals

ARROW = "\N{RIGHTWARDS ARROW}"


def against_base(
    run: Run, table: pd.DataFrame, task: str, palette: Mapping[str, str], measure: str = "accuracy"
) -> list[interval_rows.Row]:
    """Return a row for every arm but the first: its final `measure` minus the first arm's, paired by seed.

    The row with the largest difference comes first.
    """
    metric = f"{task}/{measure}"
    differences = [_difference(run, table, metric, arm, run.arms[0], palette) for arm in run.arms[1:]]
    return sorted(filter(None, differences), key=lambda row: -row.mean)


def before_after(
    run: Run, table: pd.DataFrame, task: str, palette: Mapping[str, str], measure: str = "accuracy"
) -> list[interval_rows.Row]:
    """Return a row for every arm: its `measure` before and after training.

    There are no rows if only one checkpoint is evaluated.
    """
    metric, rows = f"{task}/{measure}", []
    for arm in run.arms if len(run.ends) > 1 else ():
        before, after = (measured(table, f"{arm}/{checkpoint}", metric) for checkpoint in run.ends)
        if after.value.notna().any():
            row = interval_rows.of_levels(arm, after, palette[arm])
            started = average(before).value
            text = row.text if math.isnan(started) else f"{number(started, metric)} {ARROW} {row.text}"
            rows.append(replace(row, seeds=(), before=started, text=text))
    return rows


def ladder(
    run: Run, table: pd.DataFrame, task: str, palette: Mapping[str, str], measure: str = "accuracy"
) -> list[interval_rows.Row]:
    """Return a row for each arm of the recipe's `ladder`: its final `measure`.

    The text of a row is the difference from the row before. There are no rows if fewer than two arms have the
    measure.
    """
    metric = f"{task}/{measure}"
    rungs: list[interval_rows.Row] = []
    below = ""
    for arm in run.document.ladder:
        numbers = measured(table, end(run, arm), metric).dropna(subset=["value"])
        if arm not in run.arms or not len(numbers):
            continue
        row = interval_rows.of_levels(arm, numbers, palette[arm])
        step = interval_rows.paired(table, end(run, arm), end(run, below), metric) if below else []
        if step:
            row = replace(row, text=interval_rows.difference(step))
        rungs.append(row)
        below = arm
    return rungs if len(rungs) > 1 else []


def leave_one_out(
    run: Run, table: pd.DataFrame, task: str, palette: Mapping[str, str], measure: str = "accuracy"
) -> list[interval_rows.Row]:
    """Return a row for each arm of the recipe's `leave_one_out.without`: its final `measure` minus `full`'s.

    The differences are paired by seed.
    """
    named = run.document.leave_one_out
    if named is None:
        return []
    metric = f"{task}/{measure}"
    differences = [_difference(run, table, metric, arm, named.full, palette) for arm in named.without]
    return [row for row in differences if row]


def by_level(run: Run, table: pd.DataFrame, task: str, palette: Mapping[str, str]) -> list[interval_rows.Row]:
    """Return a row for each arm: the interquartile mean of final accuracy over seeds and difficulties.

    The best arm comes first. Only levels that all arms have count. Arms with fewer than two models are left
    out.
    """
    grids = {arm: _levels(table, arm, run.ends[-1] if run.ends else "", task) for arm in run.arms}
    grids = {arm: grid for arm, grid in grids.items() if len(grid) > 1}
    shared = sorted(set.intersection(*(set(grid.columns) for grid in grids.values()))) if grids else []
    if len(grids) < 2 or len(shared) < 2:
        return []
    ranked = []
    for arm, grid in grids.items():
        values = grid[shared].to_numpy()  # (models, levels)
        point, low, high = intervals.iqm(values)
        text = shown(Mean(point, low, high, len(values), "seeds"))
        seeds = stats.trim_mean(values, 0.25, axis=1)
        ranked.append(interval_rows.Row(arm, tuple(seeds.tolist()), point, low, high, text, palette[arm]))
    return sorted(ranked, key=lambda row: -row.mean)


def _levels(table: pd.DataFrame, arm: str, node: str, task: str) -> pd.DataFrame:
    """Return accuracy at a checkpoint: a row for each model, a column for each level of difficulty.

    Only levels that all of these models have are columns.
    """
    prefix = f"{task}/accuracy/difficulty="
    rows = table[(table.arm == arm) & (table.node == node) & table.metric.str.startswith(prefix)]
    rows = rows.drop_duplicates(["source", "metric"])
    return rows.pivot(index="source", columns="metric", values="value").dropna(axis=1)


def _difference(
    run: Run, table: pd.DataFrame, metric: str, arm: str, other: str, palette: Mapping[str, str]
) -> interval_rows.Row | None:
    values = interval_rows.paired(table, end(run, arm), end(run, other), metric)
    return interval_rows.of_differences(arm, values, palette[arm]) if values else None


def end(run: Run, arm: str) -> str:
    """Return the place `arm/checkpoint` of an arm's last checkpoint."""
    return f"{arm}/{run.ends[-1] if run.ends else ''}"
