"""Figures with all arms in one panel: entropy against accuracy, and accuracy against what it took."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from analysis.numbers.curve_metrics import COUNTED, WINDOW, named_in
from analysis.numbers.run import Run
from analysis.numbers.table import binned, curves
from analysis.page import interval_rows
from analysis.page.style import LINE, WIDTH, dashes, margins
from encore.recipe.metric_names import REACHED

MARKS = 5  # marked points of a trajectory, equally spaced in time
COLUMNS = 2  # panels side by side
COARSE = 25  # points of a line in a panel that all arms share
UNITS = {
    "updates": "updates (optimizer steps)",
    "samples": "samples (completions)",
    "flops": "floating-point operations",
    "seconds": "seconds of training",
}


def trajectory(table: pd.DataFrame, arm: str) -> pd.DataFrame:
    """Return a row for each step of an arm: its accuracy and entropy, each a mean over seeds.

    The frame is empty if one of the two was not logged.
    """
    logged = table[table.arm == arm]
    by_name = {name: binned(logged[logged.metric == name], COARSE) for name in ("accuracy", "entropy")}
    if not all(len(seeds) for seeds in by_name.values()):
        return pd.DataFrame()
    path = {name: seeds.mean(axis=1) for name, seeds in by_name.items()}
    return pd.DataFrame(path).interpolate().dropna()


def entropy_accuracy(table: pd.DataFrame, palette: Mapping[str, str]) -> Figure | None:
    """Draw entropy against accuracy of the rollouts: a line for each arm, from a ring to a disc at the end.

    The result is None if no arm has logged both.
    """
    logged = curves(table, ["accuracy", "entropy"]).dropna(subset=["value"])
    paths = {arm: path for arm in palette if len(path := trajectory(logged, arm)) > 1}
    if not paths:
        return None
    figure, (axis,) = _panels(list(palette), list(paths), palette, 1, 3.0)
    styles = dashes(list(palette))
    for arm, path in paths.items():
        colour = palette[arm]
        axis.plot(path.accuracy, path.entropy, color=colour, lw=1.5, ls=styles[arm])
        marked = path.iloc[np.linspace(0, len(path) - 1, MARKS).round().astype(int)]
        for size, ground, part in (
            (4.5, "white", marked[:1]),
            (2.8, colour, marked[1:-1]),
            (6.5, colour, marked[-1:]),
        ):
            axis.plot(part.accuracy, part.entropy, "o", color=colour, ms=size, mfc=ground)
    axis.set_xlabel("accuracy of training rollouts")
    axis.set_ylabel("entropy, nats per token", fontsize=9.5)
    return figure


def effort(table: pd.DataFrame, arm: str, unit: str, smoothed: bool = True) -> pd.Series:
    """Return the mean accuracy over seeds, indexed by what it took; `smoothed` by a trailing mean.

    `unit` is a key of UNITS. The series is empty if accuracy, or what was spent in this unit, is not logged.
    """
    logged = table[table.arm == arm]
    accuracy = binned(logged[logged.metric == "accuracy"], 10**9).rolling(WINDOW if smoothed else 1).mean()
    if unit == "updates" or not len(accuracy):
        return accuracy.mean(axis=1)
    spent = binned(logged[logged.metric == unit], 10**9)
    if not len(spent):
        return pd.Series(dtype=float)
    spent = spent.reindex(accuracy.index, method="ffill")
    return pd.Series(accuracy.mean(axis=1).to_numpy(), index=spent.mean(axis=1).to_numpy())


def accuracy_by_effort(run: Run, table: pd.DataFrame, palette: Mapping[str, str]) -> Figure | None:
    """Draw accuracy against each of UNITS that was counted, with dotted lines at the levels of claims.

    The result is None if no arm has logged both accuracy and samples.
    """
    logged = curves(table, ["accuracy", *COUNTED]).dropna(subset=["value"])
    lines = {unit: {arm: effort(logged, arm, unit).dropna() for arm in palette} for unit in UNITS}
    arms = [arm for arm in palette if len(lines["samples"][arm]) > 1]
    if not arms:
        return None
    units = [unit for unit in UNITS if any(len(lines[unit][arm]) > 1 for arm in arms)]
    figure, axes = _panels(list(palette), arms, palette, len(units), 2.5)
    styles = dashes(list(palette))
    for axis, unit in zip(axes, units, strict=True):
        for arm in arms:
            line = lines[unit][arm]
            line = line[:: max(1, len(line) // (2 * COARSE))]
            axis.plot(line.index, line, color=palette[arm], lw=1.5, ls=styles[arm])
        for level in named_in(run.document.claimed_metrics, REACHED):
            axis.axhline(float(level), color="#333333", lw=1, ls=":")
        axis.set_xlabel(UNITS[unit], fontsize=9)
        axis.tick_params(labelsize=8.5)
        axis.locator_params(axis="x", nbins=4)
        if unit == "flops":
            axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    for place, axis in enumerate(axes[1:], start=1):
        axis.sharey(axes[0])
        axis.tick_params(labelleft=place % COLUMNS == 0)
    return figure


def effort_rows(
    table: pd.DataFrame, unit: str, level: str, palette: Mapping[str, str]
) -> list[interval_rows.Row]:
    """Return a row for each arm with the updates or samples that it took to reach the accuracy `level`.

    The arm that took the fewest comes first. A run that never reached the accuracy counts with its full
    budget; the true mean of its arm is then at least as large as the mean shown.
    """
    arms = []
    for arm in palette:
        rows = table[(table.arm == arm) & table.step.isna()].drop_duplicates(["source", "metric"])
        cost = rows[rows.metric == f"{unit}_to/accuracy={level}"].set_index("source").value
        if not len(cost):
            continue
        budget = rows[rows.metric == f"{unit}_to/budget"].set_index("source").value.reindex(cost.index)
        spent, failures = cost.fillna(budget), int(cost.isna().sum())
        mean = float(spent.mean())
        text = f"{mean:,.0f}" if not failures else f"at least {mean:,.0f} ({failures} of {len(cost)} never)"
        arms.append(interval_rows.Row(arm, tuple(spent), mean, math.nan, math.nan, text, palette[arm]))
    return sorted(arms, key=lambda row: row.mean)


def _panels(
    every: list[str], arms: list[str], palette: Mapping[str, str], count: int, height: float
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels in at most two columns, above a legend of the arms.

    `height` is the height of a row of panels, in inches.
    """
    legend, columns = LINE * ((len(arms) + 1) // 2), min(count, COLUMNS)
    rows = math.ceil(count / columns)
    tall = rows * height + legend + 0.12
    figure = Figure(figsize=(WIDTH, tall))
    around = margins(tall, left=0.7, right=0.14, bottom=legend + 0.55, top=0.12)
    grid = figure.subplots(rows, columns, squeeze=False, gridspec_kw=around | {"wspace": 0.1, "hspace": 0.4})
    panels = list(grid.flat)
    for panel in panels[count:]:
        panel.remove()
    styles = dashes(every)
    handles = [Line2D([], [], color=palette[arm], ls=styles[arm], lw=1.8, label=arm) for arm in arms]
    figure.legend(
        handles=handles, loc="lower left", ncols=2, fontsize=9, handlelength=2.2, borderpad=0,
        bbox_to_anchor=(0.03, 0.01), labelspacing=0.25, columnspacing=1.4,
    )  # fmt: skip
    return figure, panels[:count]
