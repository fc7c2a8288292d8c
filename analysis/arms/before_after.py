"""Figures of evaluations before training (grey) and after it, by k or difficulty; a panel for each arm."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.coverage import crossing
from analysis.numbers.means import Mean, average
from analysis.numbers.run import Run
from analysis.page.style import banded, panels, powers_of_two

BEFORE = "#6b6b6b"
ANY = "#333333"  # colour of the legend, instead of the arms' own colours
Curve = dict[float, Mean]  # x -> mean and interval


def pass_at_k(run: Run, table: pd.DataFrame, task: str, palette: Mapping[str, str]) -> Figure | None:
    """Draw pass@k against k with 95% bands; a dotted line marks where the curves cross (crossing_of())."""
    by_place = curves(run, table, f"{task}/pass@")
    figure = _draw(run, by_place, palette, "k samples")
    if figure is None:
        return None
    for arm, axis in zip(_arms(run, by_place), figure.axes, strict=False):
        powers_of_two(axis)
        at = crossing_of(by_place, arm, run.ends)
        if at is not None:
            axis.axvline(at, color="#333333", lw=1, ls=":")
            side, shift = ("left", 3) if at < 4 else ("right", -3)
            axis.annotate(
                f"k = {at:.1f}", (at, 0.04), xycoords=("data", "axes fraction"), ha=side, fontsize=9,
                xytext=(shift, 0), textcoords="offset points",
            )  # fmt: skip
    return figure


def by_difficulty(
    run: Run, table: pd.DataFrame, task: str, what: str, palette: Mapping[str, str]
) -> Figure | None:
    """Draw `what` (accuracy or length) against the problem's difficulty."""
    return _draw(run, curves(run, table, f"{task}/{what}/difficulty="), palette, "difficulty")


def curves(run: Run, table: pd.DataFrame, prefix: str) -> dict[tuple[str, str], Curve]:
    """Return (arm, checkpoint) -> x -> the mean of the metric `<prefix><x>`, by rising x."""
    rows = table[table.metric.str.startswith(prefix) & table.node.isin(run.ends) & table.step.isna()]
    by_place: dict[tuple[str, str], Curve] = {}
    for (arm, node, metric), group in rows.groupby(["arm", "node", "metric"], sort=False):
        mean = average(group.sort_values("seed"))
        if mean.n:
            by_place.setdefault((str(arm), str(node)), {})[float(str(metric).removeprefix(prefix))] = mean
    return {key: dict(sorted(curve.items())) for key, curve in by_place.items()}


def crossing_of(by_place: Mapping[tuple[str, str], Curve], arm: str, ends: Sequence[str]) -> float | None:
    """Return the k at which an arm's mean curves before and after training cross.

    The result is None unless each curve is surely above the other at some k: their intervals do not overlap.
    """
    sides = [by_place.get((arm, end), {}) for end in ends]
    if len(sides) < 2:
        return None
    ks = [k for k in sides[0] if k in sides[1]]
    before, after = ([side[k] for k in ks] for side in sides)
    above = any(a.low > b.high for b, a in zip(before, after, strict=True))
    below = any(a.high < b.low for b, a in zip(before, after, strict=True))
    return crossing(ks, [b.value for b in before], [a.value for a in after]) if above and below else None


def _draw(
    run: Run, by_place: Mapping[tuple[str, str], Curve], palette: Mapping[str, str], label: str
) -> Figure | None:
    arms = _arms(run, by_place)
    if not arms:
        return None
    styles = [("--", BEFORE), ("-", ANY)][-len(run.ends) :]
    figure, axes = panels(
        arms,
        handles=[
            Line2D([], [], color=colour, ls=line, lw=1.6, marker="o", ms=3.2, label=name)
            for name, (line, colour) in zip(run.ends, styles, strict=True)
        ],
    )
    for arm in arms:
        axis = axes[arm]
        axis.set_title(arm)
        line_styles = [(BEFORE, "--"), (palette[arm], "-")][-len(run.ends) :]
        for name, (colour, line) in zip(run.ends, line_styles, strict=True):
            if curve := by_place.get((arm, name)):
                banded(axis, curve, colour, line, 0.22, marker="o", ms=3.2)
    figure.supxlabel(label, fontsize=10.5)
    return figure


def _arms(run: Run, by_place: Mapping[tuple[str, str], Curve]) -> list[str]:
    """Return the arms whose last checkpoint was measured, in the run's order; they have a panel."""
    return [arm for arm in run.arms if any((arm, end) in by_place for end in run.ends[-1:])]
