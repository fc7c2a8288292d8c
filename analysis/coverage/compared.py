"""What is set against the base: every other checkpoint of every arm, by every task that both were asked."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.means import Mean
from analysis.numbers.run import Run
from analysis.numbers.table import measured


@dataclass(frozen=True)
class Place:
    """A checkpoint, and that of the same arm which it is set against."""

    arm: str
    checkpoint: str
    base: str

    @property
    def at(self) -> str:
        return f"{self.arm}/{self.checkpoint}"

    @property
    def base_at(self) -> str:
        return f"{self.arm}/{self.base}"


def by_task(run: Run, numbers: pd.DataFrame) -> dict[str, list[Place]]:
    """Task -> what was compared on it, in the order of the run's arms; empty without `coverage`."""
    base = run.document.coverage
    found: dict[str, list[Place]] = {}
    for place in _places(run, base) if base else ():
        for task in tasks.tasks(run, place.arm, place.checkpoint):
            if len(measured(numbers, place.at, f"{task}/gained")):
                found.setdefault(task, []).append(place)
    return found


def _places(run: Run, base: str) -> Iterator[Place]:
    for arm in run.arms:
        names = run.checkpoints(arm)
        if base in names:
            yield from (Place(arm, name, base) for name in names if name != base)


def curve(numbers: pd.DataFrame, at: str, task: str) -> dict[int, Mean]:
    """k -> pass@k of a checkpoint, by rising k."""
    return tasks.by_count(numbers, at, f"{task}/pass")
