"""Pairs of arms that a study compares on several tasks, and how probably a run of the first is better.

A task is the metric of a claim with a direction. Claims with the same two sides make a pair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.means import Mean, with_interval
from analysis.numbers.table import measured
from analysis.page.palette import PALETTE
from analysis.page.style import banded, stacked
from analysis.statistics.improvement import Arm, Estimate, performance_profile, probability_of_improvement
from analysis.study.document import Study
from encore.recipe.claims import Claim

LEVELS = np.linspace(0, 1, 41)


@dataclass(frozen=True)
class Shared:
    """A pair of sides, `of` and `against`, that claims compare on several tasks."""

    of: str
    against: str
    arms: tuple[Arm, Arm]  # for each side, the numbers of its runs on each task; larger is better
    tasks: tuple[str, ...]

    @property
    def improvement(self) -> Estimate:
        """The probability that a run of `of` is better than a run of `against`."""
        return probability_of_improvement(*self.arms)

    @property
    def has_one_scale(self) -> bool:
        """Whether all numbers lie between 0 and 1, so that a level means the same for each task."""
        return all(0 <= number <= 1 for arm in self.arms for task in arm for number in task)


def shared(study: Study, table: pd.DataFrame) -> list[Shared]:
    """Return the pairs of sides that a study's claims compare on two tasks or more; `table`: the numbers."""
    pairs: dict[tuple[str, str], list[Claim]] = {}
    for claim in study.claims.values():
        test = claim.test
        if test.against and test.against_metric is None and test.direction != "equal":
            pairs.setdefault((test.of, test.against), []).append(claim)
    result = []
    for sides, claims in pairs.items():
        tasks = {claim.test.metric: -1 if claim.test.direction == "lower" else 1 for claim in claims}
        arms = tuple(_arm(table, side, tasks) for side in sides)
        if len(tasks) > 1 and all(map(len, [*arms[0], *arms[1]])):
            result.append(Shared(*sides, (arms[0], arms[1]), tuple(tasks)))
    return result


def _arm(table: pd.DataFrame, side: str, tasks: Mapping[str, int]) -> Arm:
    """Return the numbers of a side's runs on each task; `tasks`: metric -> 1, or -1 to turn their signs."""
    rows = (
        measured(table, side, task).drop_duplicates("source").value * sign for task, sign in tasks.items()
    )
    return [values.tolist() for values in rows]


def frame(pairs: Sequence[Shared]) -> pd.DataFrame:
    """Return a row for each pair, with the probability of improvement and its 95% interval."""
    rows = [
        {"of": pair.of, "against": pair.against, "tasks": ", ".join(pair.tasks)} | pair.improvement._asdict()
        for pair in pairs
    ]
    return pd.DataFrame(rows, columns=["of", "against", "tasks", "value", "low", "high"])


def rows_shown(pairs: Sequence[Shared]) -> pd.DataFrame:
    """Return the table of frame() as text for readers."""
    return pd.DataFrame(
        [
            {
                "a run of": pair.of,
                "is better than one of": pair.against,
                "tasks": ", ".join(pair.tasks),
                "with probability": with_interval(*pair.improvement, "accuracy"),
            }
            for pair in pairs
        ]
    )


def alt_text(pairs: Sequence[Shared]) -> str:
    """Return the probability of improvement of each pair, in words."""
    return "; ".join(f"{pair.of} better than {pair.against}: {pair.improvement.value:.0%}" for pair in pairs)


def draw(pairs: Sequence[Shared]) -> Figure | None:
    """Draw the performance profiles of each pair whose tasks have one scale; None if no pair has."""
    drawn = [pair for pair in pairs if pair.has_one_scale]
    if not drawn:
        return None
    names = list(dict.fromkeys(side for pair in drawn for side in (pair.of, pair.against)))
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}
    handles = [Line2D([], [], color=colours[name], lw=1.6, label=name.replace("$", r"\$")) for name in names]
    figure, axes = stacked(len(drawn), 2.0, handles)
    for pair, axis in zip(drawn, axes, strict=True):
        for side, arm in zip((pair.of, pair.against), pair.arms, strict=True):
            profile = performance_profile(arm, LEVELS.tolist())
            curve = {level: Mean(*share, 2, "") for level, share in zip(LEVELS, profile, strict=True)}
            banded(axis, curve, colours[side], "-", 0.16)
        axis.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="share of runs above")
    axes[-1].set_xlabel("score")
    return figure
