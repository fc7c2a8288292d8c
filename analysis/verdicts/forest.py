"""The forest plot of verdicts: a row for each claim, each on its own scale."""

import math
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from analysis.numbers.means import shown
from analysis.page.palette import VERDICT_COLOURS
from analysis.page.style import WIDTH, margins
from analysis.verdicts.claims import Verdict

LETTER = 0.086  # approximate inches of a bold letter of 10 points


def draw(verdicts: Sequence[Verdict]) -> Figure | None:
    """Draw the paired differences of each tested claim, and shade the range in which the claim holds.

    The result is None if no claim was tested.
    """
    tested = [v for v in verdicts if v.n]
    if not tested:
        return None
    tall = 0.86 * len(tested) + 0.1
    figure = Figure(figsize=(WIDTH, tall))
    around = margins(tall, left=0.3, right=0.2, bottom=0.3, top=0.26) | {"hspace": 1.15}
    axes = figure.subplots(len(tested), 1, squeeze=False, gridspec_kw=around).ravel()
    for v, axis in zip(tested, axes, strict=True):
        colour = VERDICT_COLOURS[v.word]
        edges = margins_of(v)
        marks = [*v.differences, *edges, 0.0, *filter(math.isfinite, (v.low, v.high))]
        room = 0.08 * ((max(marks) - min(marks)) or 1.0)
        left, right = min(marks) - room, max(marks) + room
        holds = {"higher": (edges[0], right), "lower": (left, edges[0])}.get(v.direction, edges)
        axis.axvspan(*holds, color="#dcefe4", lw=0)
        for edge in edges:
            axis.axvline(edge, color="#00704a", lw=1, ls=":")
        axis.axvline(0, color="#888888", lw=0.8)
        axis.plot(v.differences, [0.3] * v.n, "o", color=colour, ms=3.6, alpha=0.45, mew=0)
        if not math.isnan(v.low):
            bar = [max(v.low, left), min(v.high, right)]  # an end may be infinite
            axis.plot(bar, [0, 0], color=colour, lw=2.2, solid_capstyle="butt")
        axis.plot(v.estimate, 0, "D", color=colour, ms=5.5)
        axis.set(xlim=(left, right), ylim=(-0.5, 0.6), yticks=[])
        axis.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5))
        axis.grid(False)
        axis.spines["left"].set_visible(False)
        axis.tick_params(labelsize=9)
        # the id and the word of the verdict must fit into one line
        shrink = min(1.0, (WIDTH - 0.5) / (LETTER * len(f"{v.id}  {v.word}")))
        axis.set_title(v.id, fontsize=10 * shrink)
        axis.set_title(v.word, fontsize=9.5 * shrink, loc="right", color=colour)
    return figure


def alt_text(verdicts: Sequence[Verdict]) -> str:
    """Return a text with the id, the difference and the verdict of each tested claim."""
    return "; ".join(f"{v.id} {shown(v.difference, v.metric)}, {v.word}" for v in verdicts if v.n)


def margins_of(verdict: Verdict) -> tuple[float, ...]:
    """Return the bound beyond which a claim holds; for equality, the two bounds between which it holds."""
    if verdict.direction == "equal":
        return -verdict.margin, verdict.margin
    return (verdict.margin if verdict.direction == "higher" else -verdict.margin,)
