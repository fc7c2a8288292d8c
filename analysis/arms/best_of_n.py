"""The figure of arms.selectors: accuracy against n, in a panel for each task and policy."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.arms.selectors import ORACLE, ORDER
from analysis.page.style import powers_of_two, stacked

INK = "#333333"  # colour of curves that belong to no arm
DASHED, DOTTED, LONG = (0, (4, 1.5)), (0, (1, 1.2)), (0, (7, 2))
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "PRM, product": {"ls": "-", "marker": "o"},
    "PRM, minimum": {"ls": DASHED, "marker": "s"},
    "PRM, last step": {"ls": DOTTED, "marker": "^"},
    "ORM": {"ls": "-", "marker": "D"},
    "reward model": {"ls": "-", "marker": "v"},
    "majority": {"ls": LONG, "color": INK},
    ORACLE: {"ls": "-", "color": "#888888", "lw": 0.9},
}


def draw(frame: pd.DataFrame, palette: Mapping[str, str]) -> Figure | None:
    """Draw accuracy against n for each selector in `frame`, a table of selectors.selectors().

    The curve of a reward model has the colour of its arm. The result is None if the table is empty.
    """
    if not len(frame):
        return None
    panels = list(frame.groupby(["task", "policy"], sort=False))
    arms = [arm for arm in palette if (frame.arm == arm).any()]
    present = [selector for selector in ORDER if (frame.selector == selector).any()]
    colour = palette[arms[0]] if len(arms) == 1 else INK
    handles = [_line([], [], selector, colour) for selector in present]
    if len(arms) > 1:
        handles += [Line2D([], [], color=palette[arm], lw=4, label=arm) for arm in arms]
    figure, axes = stacked(len(panels), 2.4, handles, titles=True)
    for axis, ((task, policy), group) in zip(axes, panels, strict=True):
        axis.set_title(f"{task}, {policy}")
        for key, curve in group.groupby(["arm", "selector"], sort=False):
            arm, selector = map(str, key)
            line = _line(curve.n, curve.accuracy, selector, palette.get(arm, INK))
            axis.add_line(line)
            if selector != ORACLE:
                low, high = (curve[side].fillna(curve.accuracy) for side in ("low", "high"))
                axis.fill_between(curve.n, low, high, color=line.get_color(), alpha=0.12, lw=0)
        axis.autoscale_view()
        powers_of_two(axis)
        axis.set_ylabel("accuracy")
    axes[-1].set_xlabel("n samples")
    return figure


def _line(x: Any, y: Any, selector: str, colour: str) -> Line2D:
    """Return a line in `colour`, or in the selector's own colour if it has one."""
    return Line2D(x, y, **{"lw": 1.5, "ms": 3.8, "color": colour, **LOOKS[selector]}, label=selector)


def in_words(frame: pd.DataFrame) -> str:
    """Return the accuracy at the largest n of each curve, in words."""
    several = frame.arm[frame.arm != ""].nunique() > 1
    said = []
    for (task, policy), group in frame.groupby(["task", "policy"], sort=False):
        ends = group.groupby(["arm", "selector"], sort=False).tail(1).to_dict("records")
        of = [f" of {end['arm']}" if several and end["arm"] else "" for end in ends]
        each = [f"{end['selector']}{arm} {end['accuracy']:.0%}" for end, arm in zip(ends, of, strict=True)]
        said.append(f"{task}, {policy} at n = {group.n.max()}: {', '.join(each)}")
    return "; ".join(said)
