"""A small picture of a record for its card: the learning curves of its arms, or the final levels of the arms.

It is drawn from the record's numbers, with few points, so that the first page stays small.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from analysis.numbers import tasks
from analysis.numbers.means import Mean, number
from analysis.numbers.recorded import CURVES
from analysis.numbers.run import Run
from analysis.numbers.table import binned
from analysis.page.palette import colours
from analysis.training.learning_curves import of_rl, without_teachers
from analysis.verdicts.summary import plural

METRICS = {  # metric -> its name in the caption; the first metric that the first arm has logged is drawn
    "rewards/gold/mean": "Gold reward in training",
    "accuracy": "Accuracy in training",
    "rewards/accuracies": "Accuracy of the implicit reward",
    "reward": "Reward in training",
}
POINTS = 12  # number of points of a curve
WIDTH, HEIGHT, EDGE = 240, 72, 4  # size of a picture, in its own units


class Sketch(NamedTuple):
    """A picture, and a description of it in words."""

    svg: Markup  # hidden from screen readers, which have the caption
    caption: str


def of(record: Path, run: Run) -> Sketch | None:
    """Return the picture of a record; None if there is nothing to draw. `run` is the run of the record."""
    path = record / CURVES
    curves = _curves(pd.read_csv(path), run) if path.exists() else None
    return curves or _levels(record / "arms.csv", run)


def _curves(wide: pd.DataFrame, run: Run) -> Sketch | None:
    """Return a picture with the mean curve of each arm over the judged seeds, for one metric of METRICS.

    `wide` has the record's curves, with a column for each metric. The result is None if no metric was logged.
    """
    wide = wide[wide.arm.isin(run.arms) & ~wide.seed.isin(run.recipe.dial_seeds)]
    metric = _logged(wide[wide.arm == run.arms[0]]) or _logged(wide)
    if not metric:
        return None
    long = wide.assign(metric=metric, value=wide[metric]).dropna(subset=["value"])
    joined = of_rl(without_teachers(run, long), by=metric)
    means = {arm: binned(rows, POINTS).mean(axis=1) for arm, rows in joined.groupby("arm")}
    lines = {arm: means[arm] for arm in run.arms if arm in means}
    values = [value for line in lines.values() for value in line]
    last = max(line.index.max() for line in lines.values())
    colour = colours(run.arms)
    first, *others = lines
    paths = []
    for arm in (*others, first):
        across = np.interp(lines[arm].index.to_numpy(), [0, last], [EDGE, WIDTH - EDGE])
        path = _path(across, _down(list(lines[arm]), values))
        kind = "first" if arm == first else "other"
        paths.append(f'<path class="{kind}" stroke="{colour[arm]}" d="{path}"/>')
    thick = f", {first} thick" if others else ""
    return _sketch(paths, f"{METRICS[metric]}, {_span(values)}; {plural(len(lines), 'arm')}{thick}")


def _logged(wide: pd.DataFrame) -> str:
    """Return the first of METRICS that has values in these curves; an empty text if none has."""
    return next((name for name in METRICS if name in wide and wide[name].notna().any()), "")


def _levels(arms: Path, run: Run) -> Sketch | None:
    """Return a picture with a dot and an interval for each arm at its last checkpoint.

    `arms` is the path of arms.csv. The result is None if the last checkpoint was not evaluated.
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
    colour = colours(run.arms)
    marks = []
    for place, (arm, mean) in enumerate(means.items()):
        x = WIDTH * (place + 0.5) / len(means)
        y, low, high = _down([mean.value, *mean.ends], ends)
        marks.append(f'<path class="first" stroke="{colour[arm]}" d="{_path([x, x], [low, high])}"/>')
        marks.append(f'<circle cx="{x:.0f}" cy="{y:.1f}" r="3.5" fill="{colour[arm]}"/>')
    what = tasks.MEASURES[measure].capitalize()
    count = plural(len(means), "arm")
    return _sketch(marks, f"{what} on {task} at the end, {_span(ends)}; {count}")


def _span(values: Sequence[float]) -> str:
    """Return the smallest and the largest value as text, such as `0.1 to 0.8`."""
    return f"{number(min(values))} to {number(max(values))}"


def _down(numbers: Sequence[float], values: Sequence[float]) -> np.ndarray:
    """Return the distances of `numbers` from the upper edge of the picture, whose y axis spans `values`."""
    down: np.ndarray = np.interp(numbers, [min(values), max(values)], [HEIGHT - EDGE, EDGE])
    return down


def _sketch(shapes: Iterable[str], caption: str) -> Sketch:
    """Return a picture made of SVG elements, which contain no text, with its caption."""
    head = Markup('<svg viewBox="0 0 {} {}" aria-hidden="true">').format(WIDTH, HEIGHT)
    return Sketch(head + Markup("").join(map(Markup, shapes)) + Markup("</svg>"), caption)


def _path(across: Iterable[float], down: Iterable[float]) -> str:
    """Return the `d` of an SVG path, a line through the points with these distances from left and top."""
    return "M" + " ".join(f"{x:.0f},{y:.1f}" for x, y in zip(across, down, strict=True))
