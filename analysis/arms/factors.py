"""The figure of factors: a panel for each factor, with the final result of arms that differ only in it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from analysis.arms.effects import end
from analysis.numbers.means import Mean, average, shown
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.page.interval_rows import GREY
from analysis.page.style import panels


@dataclass(frozen=True)
class Level:
    """A value of a factor: its label on the axis, its arm, and the arm's final result."""

    name: str
    arm: str
    result: Mean


def levels(run: Run, table: pd.DataFrame, task: str, measure: str) -> dict[str, list[Level]]:
    """Return each factor of the recipe -> its measured levels; factors with fewer than two are left out."""
    measured_levels = {
        factor: [
            Level(name, arm, mean)
            for name, arm in arms.items()
            if arm in run.arms and (mean := average(measured(table, end(run, arm), f"{task}/{measure}"))).n
        ]
        for factor, arms in run.document.factors.items()
    }
    return {factor: each for factor, each in measured_levels.items() if len(each) > 1}


def draw(
    by_factor: Mapping[str, list[Level]], base: str, palette: Mapping[str, str], label: str
) -> Figure | None:
    """Draw a panel for each factor, all with the same y axis, and a dotted line at the arm `base`.

    `label` is the label of the y axis. The result is None without factors.
    """
    if not by_factor:
        return None
    figure, axes = panels(list(by_factor), own_x=True)
    for factor, each in by_factor.items():
        axis = axes[factor]
        axis.set_title(factor)
        axis.plot(range(len(each)), [level.result.value for level in each], color="#bbbbbb", lw=1, zorder=1)
        for place, level in enumerate(each):
            low, high = level.result.ends
            colour = GREY if level.arm == base else palette[level.arm]
            axis.plot([place, place], [low, high], color=colour, lw=1.6)
            axis.plot(place, level.result.value, marker="o", ms=5, color=colour)
            if level.arm == base:
                axis.axhline(level.result.value, color=GREY, lw=0.9, ls=":", zorder=0)
        # broken into lines, because a long name would run into its neighbour
        names = [level.name.replace(", ", "\n") for level in each]
        axis.set_xticks(range(len(each)), names, fontsize=9)
        axis.margins(x=0.08)
    figure.supylabel(label, fontsize=10.5)
    return figure


def in_words(by_factor: Mapping[str, list[Level]]) -> str:
    """Return the content of the figure in words: `group size: 2 0.61 [0.59, 0.63], 4 …`."""
    return "; ".join(
        f"{factor}: " + ", ".join(f"{level.name} {shown(level.result)}" for level in each)
        for factor, each in by_factor.items()
    )
