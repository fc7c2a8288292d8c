"""A small picture of a record for its card: the learning curves of its arms, or where the arms ended.

It is drawn anew from the record's numbers, with few points, so that the first page stays small.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, SupportsFloat

import pandas as pd
from markupsafe import Markup

from analysis.numbers import tasks
from analysis.numbers.means import Mean, number
from analysis.numbers.recorded import CURVES
from analysis.numbers.run import Run
from analysis.numbers.table import binned
from analysis.page.style import colours
from analysis.training.learning_curves import of_rl
from analysis.verdicts.summary import plural

METRICS = {  # what may be drawn -> what it is called: of these the one that most arms have logged
    "rewards/gold/mean": "Gold reward in training",
    "accuracy": "Accuracy in training",
    "rewards/accuracies": "Accuracy of the implicit reward",
    "reward": "Reward in training",
}
POINTS = 12  # of a curve
WIDTH, HEIGHT, EDGE = 240, 72, 4  # of a picture, in its own units


class Sketch(NamedTuple):
    """A picture and, in words, what it shows."""

    svg: Markup
    caption: str


def of(record: Path, run: Run) -> Sketch | None:
    """Return the picture of a record; `run`: the run that it is of. None if it has nothing to draw."""
    kept = record / CURVES
    drawn = _curves(pd.read_csv(kept), run) if kept.exists() else None
    return drawn or _levels(record / "arms.csv", run)


def _curves(wide: pd.DataFrame, run: Run) -> Sketch | None:
    """Return the mean curve of each arm over the judged seeds, of one metric; None if there is no curve."""
    wide = wide[~wide.seed.isin(run.recipe.dial_seeds)]
    arms_of = {name: wide.arm[wide[name].notna()].nunique() for name in METRICS if name in wide}
    metric = max(arms_of, key=lambda name: arms_of[name], default="")
    if not arms_of.get(metric):
        return None
    long = wide.assign(metric=metric, value=wide[metric]).dropna(subset=["value"])
    joined = of_rl(long, by=metric)
    means = {arm: binned(rows, POINTS).mean(axis=1) for arm, rows in joined.groupby("arm")}
    lines = {arm: means[arm] for arm in run.arms if arm in means}
    values = [value for line in lines.values() for value in line]
    last = max(line.index.max() for line in lines.values())
    across, up = _scale(0.0, last, WIDTH), _scale(min(values), max(values), HEIGHT)
    colour = colours(run.arms)
    first, *others = lines
    svg = "".join(
        f'<path class="{"first" if arm == first else "other"}" stroke="{colour[arm]}" '
        f'd="{_path((across(x), HEIGHT - up(y)) for x, y in lines[arm].items())}"/>'
        for arm in (*others, first)
    )
    thick = f", {first} thick" if others else ""
    return _sketch(svg, f"{METRICS[metric]}, {_span(values)}; {plural(len(lines), 'arm')}{thick}")


def _levels(arms: Path, run: Run) -> Sketch | None:
    """Return a dot with its interval for each arm of the table `arms`, at the last checkpoint.

    None if nothing is evaluated there.
    """
    task = tasks.headline(run)
    if not task:
        return None
    table = pd.read_csv(arms)
    table = table[(table.task == task) & (table.checkpoint == run.ends[-1])]
    measure = next((name for name in tasks.MEASURES if name in table and table[name].notna().any()), "")
    if not measure:
        return None
    levels = table[["arm", measure, f"{measure}_low", f"{measure}_high"]].dropna(subset=[measure])
    means = {arm: Mean(value, low, high, 1, "") for arm, value, low, high in levels.itertuples(index=False)}
    ends = [end for mean in means.values() for end in mean.ends]
    up, across = _scale(min(ends), max(ends), HEIGHT), _scale(-0.5, len(means) - 0.5, WIDTH)
    colour = colours(run.arms)
    marks = []
    for place, (arm, mean) in enumerate(means.items()):
        x, y, (low, high) = across(place), HEIGHT - up(mean.value), (HEIGHT - up(end) for end in mean.ends)
        marks.append(
            f'<path class="first" stroke="{colour[arm]}" d="{_path([(x, low), (x, high)])}"/>'
            f'<circle cx="{x:.0f}" cy="{y:.1f}" r="3.5" fill="{colour[arm]}"/>'
        )
    what = tasks.MEASURES[measure].capitalize()
    count = plural(len(means), "arm")
    return _sketch("".join(marks), f"{what} on {task} at the end, {_span(ends)}; {count}")


def _span(values: Sequence[float]) -> str:
    return f"{number(min(values))} to {number(max(values))}"


def _sketch(drawing: str, caption: str) -> Sketch:
    """Return a picture of a drawing, of which nothing is text."""
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, caption)
    return Sketch(head + Markup(drawing) + Markup("</svg>"), caption)


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + " ".join(f"{x:.0f},{y:.1f}" for x, y in points)


class _Scale(NamedTuple):
    """A map of an interval of numbers onto the length of a picture, less an edge at both ends."""

    low: float
    span: float
    length: float

    def __call__(self, value: SupportsFloat) -> float:
        return EDGE + (float(value) - self.low) / self.span * (self.length - 2 * EDGE)


def _scale(low: float, high: float, length: float) -> _Scale:
    return _Scale(low, (high - low) or 1.0, length)
