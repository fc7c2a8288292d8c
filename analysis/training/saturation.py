"""The figure of accuracy against compute, with the sigmoid that the first half of training predicts."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from analysis.numbers.table import curves
from analysis.page.style import panels
from analysis.statistics.sigmoid import SEEN, Sigmoid, of_first_half
from analysis.training.effort import UNITS, effort

UNIT = "flops"


def fits(table: pd.DataFrame, palette: Mapping[str, str]) -> dict[str, tuple[pd.Series, Sigmoid]]:
    """Return arm -> its accuracy by operations, a mean over seeds, and the law of its first half.

    An arm that has logged too little for a fit is left out.
    """
    logged = curves(table, ["accuracy", UNIT]).dropna(subset=["value"])
    by_arm = {}
    for arm in palette:
        line = effort(logged, arm, UNIT, smoothed=False).dropna()
        law = of_first_half(line.index.to_numpy(dtype=float), line.to_numpy(dtype=float))
        if law is not None:
            by_arm[arm] = (line, law)
    return by_arm


def draw(table: pd.DataFrame, palette: Mapping[str, str]) -> Figure | None:
    """Draw a panel for each arm: its accuracy, and the law, dashed where it predicts.

    The result is None if no arm has logged enough.
    """
    by_arm = fits(table, palette)
    if not by_arm:
        return None
    handles = [
        Line2D([], [], color="#333333", lw=0, marker="o", ms=2.5, label="rollouts"),
        Line2D([], [], color="#333333", lw=1.6, label="fitted"),
        Line2D([], [], color="#333333", lw=1.6, ls="--", label="predicted"),
    ]
    figure, axes = panels(list(by_arm), handles=handles, own_x=True)
    for arm, (line, law) in by_arm.items():
        axis, colour = axes[arm], palette[arm]
        compute = line.index.to_numpy(dtype=float)
        axis.set_title(f"{arm}: to {law.asymptote:.2f}")
        axis.plot(compute, line, "o", color=colour, ms=1.8, alpha=0.5, mew=0)
        grid = np.linspace(compute[0], compute[-1], 100)
        seen = grid <= SEEN * compute[-1]
        axis.plot(grid[seen], law.at(grid[seen]), color=colour, lw=1.6)
        axis.plot(grid[~seen], law.at(grid[~seen]), color=colour, lw=1.6, ls="--")
        axis.locator_params(axis="x", nbins=4)
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.supxlabel(UNITS[UNIT], fontsize=10.5)
    return figure
