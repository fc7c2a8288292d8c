"""The learning curves of a page as JSON; its script draws the measure, axis and arms that a reader picks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from analysis.numbers.run import Run
from analysis.numbers.table import binned
from analysis.page.markup import script_json
from analysis.training import learning_curves, series

# metrics by which the stages of a curve are known: of reinforcement learning, the bandit, and DPO
LOGGED = ("reward", "regret", "rewards/accuracies")
# least and most points of a curve, and points of all arms together, so that a page stays below 1 MB
FEWEST, MOST, OF_ALL_ARMS = 8, 24, 128
DIGITS = 3
# x axis -> the column of the table of jobs that it sums; None for what training itself logs
AXES = {"updates": None, "samples": None, "seconds (median job)": "wall_s", "FLOP (estimate)": "flops"}


@dataclass(frozen=True)
class Stretch:
    """A stage of an arm: the part of the arm's curve that it makes, and what its jobs took."""

    steps: float  # number of training steps
    # column of the table of jobs -> median over seeds, because a paused job counts the pause in its seconds
    spent: Mapping[str, float]


def data(run: Run, table: pd.DataFrame, jobs: pd.DataFrame, palette: Mapping[str, str]) -> Markup:
    """Return the curves as JSON for the page's script: each arm with its axes, and a chart for each measure.

    The text is empty if no stage has logged any of LOGGED. `palette` maps arms to colours.
    """
    metrics = set(table.metric[table.step.notna()])
    by = next((metric for metric in LOGGED if metric in metrics), "")
    training = learning_curves.of_rl(learning_curves.without_teachers(run, table), by)
    groups = dict(tuple(training.groupby(["arm", "metric"])))
    points = max(FEWEST, min(MOST, OF_ALL_ARMS // len(run.arms)))
    grids = {arm: binned(groups.get((arm, by)), points).index.to_numpy(float) for arm in run.arms}
    arms = [arm for arm in run.arms if len(grids[arm]) > 1]
    if not arms:
        return Markup()
    drawn = [
        {
            "name": arm,
            "colour": palette[arm],
            "axes": _axes(groups, arm, grids[arm], _stretches(table, jobs, arm, by)),
        }
        for arm in arms
    ]
    charts = [
        {"label": label, "lines": lines}
        for label, metric in _measures()
        if any(lines := [_line(groups.get((arm, metric)), grids[arm]) for arm in arms])
    ]
    return script_json([{"arms": drawn, "charts": charts}])


def _measures() -> Iterator[tuple[str, str]]:
    """Yield label and metric of each chart that may be drawn."""
    for figure in (*series.TRAINING, *series.PREFERENCES):
        for metric, label, _ in figure.metrics:
            yield f"{figure.title}, {label}" if label else figure.title, metric


def _line(rows: pd.DataFrame | None, grid: np.ndarray) -> dict[str, list[float]] | None:
    """Return mean, minimum (low) and maximum (high) over seeds at the steps of `grid`; None without rows."""
    seeds = binned(None if rows is None else rows.dropna(subset=["value"]), MOST)
    if not len(seeds):
        return None
    at = seeds.index.to_numpy(float)
    of_seeds = {"mean": seeds.mean(axis=1), "low": seeds.min(axis=1), "high": seeds.max(axis=1)}
    return {name: _rounded(np.interp(grid, at, values.to_numpy(float))) for name, values in of_seeds.items()}


def _stretches(table: pd.DataFrame, jobs: pd.DataFrame, arm: str, by: str) -> list[Stretch]:
    """Return the stages of an arm that log metric `by`, in the order of its curve."""
    logged = table[(table.arm == arm) & table.step.notna() & (table.metric == by)]
    stretches = []
    for node in logged.node.unique():
        of_stage = jobs[(jobs.arm == arm) & (jobs.stage == node)]
        spent = {column: float(of_stage[column].median()) for column in AXES.values() if column}
        stretches.append(Stretch(float(logged.step[logged.node == node].max()), spent))
    return stretches


def _axes(groups: Any, arm: str, grid: np.ndarray, stretches: list[Stretch]) -> dict[str, list[float]]:
    """Return each x axis of AXES -> its value at each step of `grid`; an axis without numbers is left out."""
    axes = {"updates": _rounded(grid)}
    samples = binned(groups.get((arm, "samples")), 10**9).mean(axis=1)
    if len(samples):
        axes["samples"] = _rounded(np.interp(grid, samples.index.to_numpy(float), samples.to_numpy(float)))
    ends = np.cumsum([0.0, *(stretch.steps for stretch in stretches)])
    for axis, column in AXES.items():
        if column is None:
            continue
        spent = np.cumsum([0.0, *(stretch.spent[column] for stretch in stretches)])
        if np.isfinite(spent).all() and spent[-1] > 0:
            axes[axis] = _rounded(np.interp(grid, ends, spent))
    return axes


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]
