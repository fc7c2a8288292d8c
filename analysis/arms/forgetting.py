"""The figure of what training on one task costs on others, against the forward KL on the task of training.

Shenfeld et al. (arXiv 2509.04259) find that how much is forgotten depends on this KL alone, whatever the
method. Then the checkpoints of all arms lie on one curve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.frontiers import forward_kl
from analysis.numbers.means import Mean, average, number
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.page.style import dashes, panels, square_root


@dataclass(frozen=True)
class Point:
    """A checkpoint: the forward KL on the task of training, and the accuracy on another task."""

    checkpoint: str
    kl: Mean
    accuracy: Mean


@dataclass(frozen=True)
class Curve:
    """The checkpoints of an arm on a task that it was not trained on, from the start of training on."""

    arm: str
    task: str
    points: tuple[Point, ...]


def curves(run: Run, numbers: pd.DataFrame) -> list[Curve]:
    """Return a curve for each arm and each task but the one that scores forward_kl; [] if none scores it.

    An arm that does not evaluate its start has the start of the first arm.
    """
    kl = forward_kl(numbers)
    if not kl:
        return []
    of_training = f"{kl.rpartition('/')[0]}/accuracy"
    others = [
        name.removesuffix("/accuracy")
        for name in numbers.metric.unique()
        if name.endswith("/accuracy") and name.count("/") == 1 and name != of_training
    ]
    result = []
    for task in others:
        start = _points(run, numbers, run.arms[0], kl, task)[:1]
        for arm in run.arms:
            points = _points(run, numbers, arm, kl, task)
            if points and points[0].checkpoint not in {point.checkpoint for point in start}:
                points = [*start, *points]
            if len(points) > 1:
                result.append(Curve(arm, task, tuple(points)))
    return result


def _points(run: Run, numbers: pd.DataFrame, arm: str, kl: str, task: str) -> list[Point]:
    """Return a point for each checkpoint of an arm that has both numbers."""
    points = []
    for checkpoint in run.checkpoints(arm):
        at = f"{arm}/{checkpoint}"
        means = [average(measured(numbers, at, metric)) for metric in (kl, f"{task}/accuracy")]
        if all(mean.n for mean in means):
            points.append(Point(checkpoint, *means))
    return points


def draw(curves: Sequence[Curve], palette: Mapping[str, str]) -> Figure | None:
    """Draw a panel for each task, with a line through the checkpoints of each arm; None without curves."""
    if not curves:
        return None
    arms = list(dict.fromkeys(curve.arm for curve in curves))
    styles = dashes(arms)
    handles = [
        Line2D([], [], color=palette[arm], ls=styles[arm], marker="o", ms=4, lw=1.4, label=arm)
        for arm in arms
    ]
    figure, axes = panels(list(dict.fromkeys(curve.task for curve in curves)), handles=handles)
    for curve in curves:
        axis, colour = axes[curve.task], palette[curve.arm]
        x = [max(point.kl.value, 0.0) for point in curve.points]
        y = [point.accuracy.value for point in curve.points]
        axis.plot(x, y, color=colour, ls=styles[curve.arm], marker="o", ms=4, lw=1.4, clip_on=False)
        for place, point in zip(x, curve.points, strict=True):
            axis.plot([place, place], point.accuracy.ends, color=colour, lw=1, alpha=0.7)
    largest = max(point.kl.value for curve in curves for point in curve.points)
    for task, axis in axes.items():
        axis.set_title(task)
        square_root(axis, largest)
    figure.supxlabel("forward KL on the task of training, nats a sequence", fontsize=9.5)
    figure.supylabel("accuracy", fontsize=9.5)
    return figure


def in_words(curves: Sequence[Curve]) -> str:
    """Return the end of each arm's curve in words."""
    return "; ".join(
        f"{curve.arm}: {number(curve.points[-1].accuracy.value)} on {curve.task} at a forward KL of "
        f"{number(curve.points[-1].kl.value)}"
        for curve in curves
    )
