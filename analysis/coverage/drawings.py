"""The figures of section "coverage": curves of pass@k, and bars of solved problems."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.coverage.build import SOLVED, Place, curve
from analysis.page.style import LINE, WIDTH, banded, dashes, margins, powers_of_two, stacked

BASE = "#333333"
FILLS = {"both": "#b5b5b5", "lost": "#d55e00", "gained": "#0173b2", "neither": "#f0f0f0"}
TALL = 0.27  # inches: the height of a bar
Compared = Mapping[str, Sequence[Place]]  # task -> the checkpoints compared on it


def curves(numbers: pd.DataFrame, by_task: Compared, palette: Mapping[str, str]) -> Figure | None:
    """Draw pass@k against k with 95% bands, a panel for each task; the base is dashed, arms have colours."""
    arms = list(dict.fromkeys(place.arm for places in by_task.values() for place in places))
    if not arms:
        return None
    styles = dashes(list(palette))
    handles = [Line2D([], [], color=BASE, ls="--", lw=1.8, label="base")]
    handles += [Line2D([], [], color=palette[arm], ls=styles[arm], lw=1.6, label=arm) for arm in arms]
    figure, axes = stacked(len(by_task), 2.3, handles, titles=True)
    for axis, (task, places) in zip(axes, by_task.items(), strict=True):
        drawn = {place.base_at: ("--", BASE) for place in places[:1]}
        drawn |= {place.at: (styles[place.arm], palette[place.arm]) for place in places}
        for at, (line, colour) in drawn.items():
            banded(axis, curve(numbers, at, task), colour, line, 0.16)
        axis.set_title(task)
        powers_of_two(axis)
    axes[-1].set_xlabel("k samples")
    return figure


def solved_sets(frame: pd.DataFrame) -> Figure | None:
    """Draw a bar for each checkpoint: the shares of problems that it and the base solve.

    `frame` is a table of build.solved(). The result is None if it is empty.
    """
    if not len(frame):
        return None
    groups = list(frame.groupby("task", sort=False))
    bars = sum(group.checkpoint.nunique() for _, group in groups)
    tall = TALL * (bars + 1.8 * len(groups)) + 0.75
    figure = Figure(figsize=(WIDTH, tall))
    axis = figure.subplots(gridspec_kw=margins(tall, left=1.55, right=0.2, bottom=0.7, top=0.05))
    y, names = 0.0, {}
    for task, group in groups:
        axis.text(0, y, str(task), fontsize=9.5, weight="bold", va="center")
        for at, rows in group.groupby("checkpoint", sort=False):
            y += 1
            value, left = rows.set_index("measure").value, 0.0
            for name in SOLVED:
                axis.barh(y, value[name], left=left, color=FILLS[name], height=0.74, ec="#999999", lw=0.4)
                left += value[name]
            names[y] = str(at).removesuffix("/after")
        y += 1.8
    axis.set(xlim=(0, 1), ylim=(y - 0.9, -0.7), yticks=list(names), yticklabels=list(names.values()))
    axis.xaxis.set_major_formatter("{x:.0%}")
    axis.tick_params(labelsize=9, axis="both", length=0)
    axis.grid(visible=False, axis="y")
    figure.legend(
        handles=[Patch(facecolor=FILLS[name], edgecolor="#999999", label=SOLVED[name]) for name in SOLVED],
        loc="lower left", bbox_to_anchor=(0.02, 0.0), ncols=len(SOLVED), fontsize=9, handlelength=1.2,
        columnspacing=1.2,
    )  # fmt: skip
    axis.set_xlabel("of the problems, solved by", fontsize=9.5, labelpad=LINE)
    return figure


def in_words(frame: pd.DataFrame) -> str:
    """Return the content of the bars of solved_sets() in words."""
    if not len(frame):
        return ""
    wide = frame.pivot_table(index=["task", "checkpoint"], columns="measure", values="value", sort=False)
    return "; ".join(
        f"{task}, {at}: " + ", ".join(f"{SOLVED[name]} {row[name]:.0%}" for name in SOLVED)
        for (task, at), row in zip(wide.index, wide.to_dict("records"), strict=True)
    )
