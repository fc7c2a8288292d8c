"""Figures made of rows, such as forest plots, ladders and dot plots.

A row has a name and a number as text. Below them are marks for the seeds, for their mean and for its
interval, and perhaps a ring at the mean before training. All rows are computed before the figure is drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from analysis.numbers.means import MINUS, average, shown
from analysis.numbers.table import measured
from analysis.page.figures import Plan
from analysis.page.style import WIDTH, margins
from analysis.statistics.intervals import interval

TALL = 0.43  # inches: the height of a row
GREY = "#6b6b6b"


@dataclass(frozen=True)
class Row:
    """A row of a figure; `text`, its number as text, stands at the right end."""

    name: str
    seeds: tuple[float, ...]
    mean: float
    low: float  # the interval of the mean; nan if there is no interval
    high: float
    text: str
    colour: str = GREY
    before: float = math.nan  # the mean before training; nan: no ring is drawn

    @property
    def alt_text(self) -> str:
        """The row's part of the figure's alternative text."""
        return f"{self.name} {self.text}"


def signed(value: float) -> str:
    """Return a number with its sign and three decimals, such as `+0.031`, with a typographic minus sign."""
    return f"{value:+.3f}".replace("-", MINUS)


def difference(values: Sequence[float]) -> str:
    """Return the mean of the seeds' differences with its interval: `+0.031 [+0.020, +0.042]`."""
    mean = signed(sum(values) / len(values))
    return f"{mean} [{', '.join(map(signed, interval(values)))}]" if len(values) > 1 else mean


def paired(table: pd.DataFrame, of: str, against: str, metric: str) -> list[float]:
    """Return, for each seed, `metric` of the model `of` minus the metric of the model `against`.

    A model is named `arm/node`. Seeds that share both models count once.
    """
    left, right = measured(table, of, metric), measured(table, against, metric)
    pairs = pd.DataFrame({"d": left.value - right.value, "source": left.source + " " + right.source})
    return pairs.dropna().drop_duplicates("source").d.tolist()


def of_differences(name: str, values: Sequence[float], colour: str) -> Row:
    """Return the row that shows `values`, one difference for each seed."""
    low, high = interval(values) if len(values) > 1 else (math.nan, math.nan)
    return Row(name, tuple(values), sum(values) / len(values), low, high, difference(values), colour)


def of_levels(name: str, numbers: pd.DataFrame, colour: str) -> Row:
    """Return the row that shows the values in `numbers`, a table made by measured()."""
    mean = average(numbers)
    seeds = numbers.dropna(subset=["value"]).drop_duplicates("source").value
    return Row(name, tuple(seeds), mean.value, mean.low, mean.high, shown(mean), colour)


def plan(name: str, title: str, caption: str, rows: Sequence[Row], label: str, **options: bool) -> Plan:
    """Return the plan of a figure of these rows; without rows, no figure is drawn.

    `options` are the arguments `zero` and `joined` of draw().
    """
    alt_text = "; ".join(row.alt_text for row in rows)
    return Plan(name, title, caption, lambda: draw(rows, label, **options) if rows else None, alt_text)


def draw(rows: Sequence[Row], label: str, zero: bool = False, joined: bool = False) -> Figure:
    """Draw the rows below one another on a common x axis with this label.

    zero: draw a vertical line at 0. joined: join the means like the steps of a ladder.
    """
    tall = TALL * len(rows) + 0.62
    figure = Figure(figsize=(WIDTH, tall))
    axis = figure.add_axes(_box(margins(tall, left=0.16, right=0.16, bottom=0.5, top=0.12)))
    marks = [x for row in rows for x in (*row.seeds, row.mean, row.low, row.high, row.before)]
    marks = [x for x in marks if not math.isnan(x)]
    marks += [0.0] if zero else []
    room = 0.04 * ((max(marks) - min(marks)) or 1.0)
    axis.set(xlim=(min(marks) - room, max(marks) + room), ylim=(len(rows) - 0.25, -0.75), yticks=[])
    axis.spines["left"].set_visible(False)
    axis.xaxis.set_major_locator(mpl.ticker.MaxNLocator(6))
    axis.tick_params(labelsize=9)
    axis.set_xlabel(label, fontsize=9.5)
    if zero:
        axis.axvline(0, color="#888888", lw=0.9)
    if joined:
        axis.step([row.mean for row in rows], range(len(rows)), where="pre", color="#b0b0b0", lw=1)
    across = axis.get_yaxis_transform()
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    for y, row in enumerate(rows):
        axis.text(
            0, y - 0.42, row.name, transform=across, fontsize=9.5, weight="bold", va="center", bbox=ground
        )
        axis.text(1, y - 0.42, row.text, transform=across, fontsize=9, ha="right", va="center", bbox=ground)
        if not math.isnan(row.before):
            axis.plot([row.before, row.mean], [y, y], "-", color=GREY, lw=0.9)
            axis.plot(row.before, y, "o", color=GREY, ms=5.5, mfc="white")
        axis.plot(row.seeds, [y] * len(row.seeds), "o", color=row.colour, ms=3.6, alpha=0.45, mew=0)
        if not math.isnan(row.low):
            axis.plot([row.low, row.high], [y, y], color=row.colour, lw=2.2, solid_capstyle="butt")
        axis.plot(row.mean, y, "D", color=row.colour, ms=5.5)
    return figure


def _box(around: dict[str, float]) -> tuple[float, float, float, float]:
    """Return left, bottom, width and height of the panel inside margins(), as fractions of the figure."""
    return (
        around["left"], around["bottom"], around["right"] - around["left"], around["top"] - around["bottom"],
    )  # fmt: skip
