"""A score at equal KL, which is read off a frontier: a curve through several checkpoints of one seed.

`heldout/gold_at_kl/2.5` of `frontier/swept` is the score `heldout/gold` at `heldout/kl` = 2.5 nats. It is
interpolated between the nearest checkpoints below and above, linearly in sqrt(KL), because Gao et al.
(2210.10760) write reward as a function of this distance. Checkpoints of the same KL count as one, with their
mean score. Outside the range of the checkpoints the number is nan. A KL that was estimated below 0 counts
as 0.

`sorting/accuracy_at_forward_kl/0.5` is the accuracy on task `sorting` where the forward KL is 0.5 nats on the
one task that scores it, which is the task of training.

A seed that lacks a number at one of the checkpoints, for example because a look has stopped its arm, has no
row, because the curve through the other checkpoints would be a different one. A claim leaves out such seeds,
and seeds with nan. Seeds that reach a KL are not a random sample of all seeds, so a claim should compare at a
KL that every seed reaches.

The numbers are rows of the tidy table, with arm `frontier` and the frontier's name as node. `source` joins
the sources of the two checkpoints that the number lies between, because no other checkpoint affects it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from encore.recipe.claims import FRONTIER
from encore.recipe.document import Document
from encore.recipe.metric_names import ON_FRONTIER


@dataclass(frozen=True)
class Point:
    """A checkpoint of one seed: its KL to the reference in nats per sequence, and its score."""

    kl: float
    score: float
    place: str = ""
    source: str = ""

    @property
    def distance(self) -> float:
        return math.sqrt(max(self.kl, 0.0))


@dataclass(frozen=True)
class Reading:
    """A number read off a frontier, and the points that it was read between; all points if it is nan."""

    frontier: str
    metric: str
    seed: int
    value: float
    between: tuple[Point, ...]


def rows(document: Document, table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that the recipe's frontiers add to `table`, the tidy table of a run.

    They are the numbers that claims and gates of the recipe `document` name.
    """
    entries = [
        {
            "arm": FRONTIER,
            "seed": reading.seed,
            "node": reading.frontier,
            "metric": reading.metric,
            "value": reading.value,
            "source": " ".join(sorted({point.source for point in reading.between})),
        }
        for reading in readings(document, table)
    ]
    added = pd.DataFrame(entries, columns=table.columns)
    if entries:
        added[["recipe", "scale"]] = table[["recipe", "scale"]].iloc[0].tolist()
    return added.astype(table.dtypes.to_dict())


def readings(document: Document, table: pd.DataFrame) -> list[Reading]:
    """Return each number of a frontier that claims and gates name, for each seed, from a tidy table."""
    result = []
    for name, metrics in document.asked_of_frontiers.items():
        places = document.frontiers[name]
        for metric in metrics:
            if match := ON_FRONTIER.fullmatch(metric):
                task, score, divergence, level = match.groups()
                kl = f"{task}/kl" if divergence == "kl" else forward_kl(table)
                for seed, points in _points(table, places, kl, f"{task}/{score}").items():
                    result.append(Reading(name, metric, seed, *at(points, float(level))))
    return result


def forward_kl(table: pd.DataFrame) -> str:
    """Return the metric of the only task that scores forward_kl; "" if the table has no such metric."""
    metrics = table.metric[table.metric.str.endswith("/forward_kl")]
    return str(metrics.iloc[0]) if len(metrics) else ""


def at(points: Sequence[Point], kl: float) -> tuple[float, tuple[Point, ...]]:
    """Return the score at a KL and the points that it is read between; nan and all points if out of range."""
    x = math.sqrt(kl)
    below = max((point.distance for point in points if point.distance <= x), default=math.nan)
    above = min((point.distance for point in points if point.distance >= x), default=math.nan)
    if math.isnan(below + above):
        return math.nan, tuple(points)
    left, right = _all_at(points, below), _all_at(points, above)
    share = (x - below) / (above - below) if above > below else 0.0
    value = (1 - share) * _score(left) + share * _score(right)
    return value, left if below == above else left + right


def _all_at(points: Sequence[Point], distance: float) -> tuple[Point, ...]:
    return tuple(point for point in points if point.distance == distance)


def _score(points: Sequence[Point]) -> float:
    return math.fsum(point.score for point in points) / len(points)


def _points(table: pd.DataFrame, places: Sequence[str], kl: str, score: str) -> dict[int, list[Point]]:
    """Return seed -> a point for each of the places; seeds without all points are left out."""
    final = table[table.step.isna() & table.metric.isin([kl, score]) & table.value.notna()]
    numbers = {
        (int(seed), f"{arm}/{node}", metric): (value, source)
        for seed, arm, node, metric, value, source in zip(
            final.seed, final.arm, final.node, final.metric, final.value, final.source, strict=True
        )
    }
    by_seed = {}
    for seed in sorted({seed for seed, _, _ in numbers}):
        if all((seed, place, metric) in numbers for place in places for metric in (kl, score)):
            pairs = [(numbers[seed, place, kl], numbers[seed, place, score], place) for place in places]
            by_seed[seed] = [Point(x, y, place, source) for (x, source), (y, _), place in pairs]
    return by_seed
