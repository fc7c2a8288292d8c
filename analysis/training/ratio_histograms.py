"""The histograms of log importance ratios, from each stage's file ratios.csv, in a panel for each arm."""

import math
from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.means import MINUS
from analysis.numbers.run import Run, read_rows
from analysis.page.style import panels, powers_of_ten
from analysis.training.objectives import clip_range, stages

LEVELS = {"token": "-", "sequence": "--"}


def read_histograms(run: Run, arm: str) -> pd.DataFrame:
    """Return the sum of the histograms of an arm's stages and seeds: columns level, low, high and count.

    A row counts the log ratios in [low, high). `level` is a key of LEVELS. The frame is empty if no stage has
    a histogram.
    """
    nodes = {node for seed in run.seeds for node in stages(run, arm, seed)}
    files = [run.folder(node) / "ratios.csv" for node in sorted(nodes)]
    parts = [read_rows(path, ["low", "high", "count"]) for path in files if path.exists()]
    if not parts:
        return pd.DataFrame(columns=["level", "low", "high", "count"])
    return pd.concat(parts).groupby(["level", "low", "high"])["count"].sum().reset_index()


def draw(run: Run, palette: Mapping[str, str]) -> Figure | None:
    """Draw the share of token and sequence ratios in each bin, on log scales, and dotted the clip range.

    The result is None if no arm has a histogram.
    """
    by_arm = {
        arm: counts for arm in run.arms if len(counts := read_histograms(run, arm)) and counts["count"].sum()
    }
    if not by_arm:
        return None
    handles = [
        Line2D([], [], color="#333333", ls=line, lw=1.4, label=level) for level, line in LEVELS.items()
    ]
    figure, axes = panels(list(by_arm), handles=handles)
    reach, shares = [1e-6], []
    for arm, counts in by_arm.items():
        axes[arm].set_title(arm)
        for level, line in LEVELS.items():
            part = counts[counts.level == level].sort_values("low")
            if not part["count"].sum():
                continue
            share = part["count"] / part["count"].sum()
            edges = [*part.low, part.high.iloc[-1]]
            axes[arm].stairs(share, edges, color=palette[arm], ls=line, lw=1.4)
            shares += share[share > 0].tolist()
            seen = part[part["count"] > 0]
            reach += [*seen.low.abs(), *seen.high.abs()]
        for bound in filter(None, clip_range(run, arm) or ()):
            axes[arm].axvline(math.log(bound), color="#333333", lw=1, ls=":")
            reach.append(abs(math.log(bound)))
    first = axes[next(iter(by_arm))]
    least = min((abs(x) for x in _edges(by_arm) if x), default=1e-6)
    first.set_xscale("symlog", linthresh=least, linscale=0.5)
    most = math.ceil(math.log10(max(reach)) + 0.05)
    first.set_xlim(-(10.0**most), 10.0**most)
    powers = [power for power in (most - 1, most - 4) if 10.0**power > least]
    ticks = {0.0: "0"} | {sign * 10.0**power: _power(sign, power) for sign in (-1, 1) for power in powers}
    powers_of_ten(first, shares)
    for axis in axes.values():
        axis.set_xticks(list(ticks), list(ticks.values()), fontsize=8.5)
        axis.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    figure.supxlabel("log ratio", fontsize=10.5)
    return figure


def _power(sign: int, power: int) -> str:
    """Return a power of ten in few characters, such as `0.1` or `1e-4`."""
    return ("" if sign > 0 else MINUS) + (f"{10.0**power:g}" if -3 <= power <= 2 else f"1e{power}")


def _edges(by_arm: Mapping[str, pd.DataFrame]) -> np.ndarray:
    return np.unique(np.concatenate([counts.low.to_numpy() for counts in by_arm.values()]))
