"""The numbers of section "coverage": where curves of pass@k cross, and which problems are solved.

The base is the checkpoint that the recipe's key `coverage` names. It is compared with every other checkpoint
of its arm, on every task that both were asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.means import Mean, average
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from encore.recipe.metric_names import FAMILIAR

# metric of numbers.coverage -> which of the two models solve these problems; the shares add up to 1
SOLVED = {"both": "both", "lost": "base alone", "gained": "it alone", "neither": "neither"}
PERPLEXITY = "perplexity_correct"


@dataclass(frozen=True)
class Place:
    """A checkpoint, and the checkpoint of the same arm that it is compared with."""

    arm: str
    checkpoint: str
    base: str

    @property
    def at(self) -> str:
        return f"{self.arm}/{self.checkpoint}"

    @property
    def base_at(self) -> str:
        return f"{self.arm}/{self.base}"


@dataclass(frozen=True)
class Coverage:
    """The compared checkpoints, and the tables of crossovers() and solved()."""

    by_task: Mapping[str, Sequence[Place]]  # task -> the checkpoints compared on it, one or more
    crossovers: pd.DataFrame
    solved: pd.DataFrame


def build(run: Run, numbers: pd.DataFrame) -> Coverage | None:
    """Return the coverage of a run, from its final numbers; None if its recipe lacks the key `coverage`."""
    compared = by_task(run, numbers)
    if not compared:
        return None
    return Coverage(compared, crossovers(numbers, compared), solved(numbers, compared))


def by_task(run: Run, numbers: pd.DataFrame) -> dict[str, list[Place]]:
    """Return task -> the checkpoints compared on it, in the run's order of arms; {} without any."""
    base = run.document.coverage
    places: dict[str, list[Place]] = {}
    for place in _places(run, base) if base else ():
        for task in tasks.tasks(run, place.arm, place.checkpoint):
            if len(measured(numbers, place.at, f"{task}/gained")):
                places.setdefault(task, []).append(place)
    return places


def _places(run: Run, base: str) -> Iterator[Place]:
    for arm in run.arms:
        names = run.checkpoints(arm)
        if base in names:
            yield from (Place(arm, name, base) for name in names if name != base)


def curve(numbers: pd.DataFrame, at: str, task: str) -> dict[int, Mean]:
    """Return k -> pass@k of a checkpoint, by rising k."""
    return tasks.by_count(numbers, at, f"{task}/pass")


def crossovers(numbers: pd.DataFrame, by_task: Mapping[str, Sequence[Place]]) -> pd.DataFrame:
    """Return a row for each task and checkpoint: pass@k at the smallest and largest k, and the crossover.

    The crossover is the median over seeds, from the smallest to the largest; both models have their pass@k.
    """
    rows = []
    for task, places in by_task.items():
        for place in places:
            ends = [_ends(numbers, at, task) for at in (place.base_at, place.at)]
            means = {name: _mean(numbers, place.at, task, name) for name in ("crossed", "ahead", "behind")}
            seeds = measured(numbers, place.at, f"{task}/crossover").value
            rows.append(
                {"task": task, "checkpoint": place.at, "k": ends[1][0]}
                | {
                    f"base {side}": mean.value
                    for side, mean in zip(("first", "last"), ends[0][1:], strict=True)
                }
                | {side: mean.value for side, mean in zip(("first", "last"), ends[1][1:], strict=True)}
                | {
                    "seeds that cross": int(seeds.notna().sum()),
                    "seeds": len(seeds),
                    "crossover": seeds.median(),
                }
                | {"from": seeds.min(), "to": seeds.max()}
                | {name: mean.value for name, mean in means.items()}
            )
    return pd.DataFrame(rows)


def solved(numbers: pd.DataFrame, by_task: Mapping[str, Sequence[Place]]) -> pd.DataFrame:
    """Return a row for each task, checkpoint and measure: its mean over seeds, and the interval.

    Both are nan if the measure is missing.
    """
    rows = []
    for task, places in by_task.items():
        for place in places:
            of_base = {"base perplexity": _mean(numbers, place.base_at, task, PERPLEXITY)}
            names = (*SOLVED, "gained_by_chance", FAMILIAR, PERPLEXITY)
            means = {name: _mean(numbers, place.at, task, name) for name in names} | of_base
            rows += [
                {"task": task, "checkpoint": place.at, "measure": name} | mean.columns()
                for name, mean in means.items()
            ]
    return pd.DataFrame(rows)


def _ends(numbers: pd.DataFrame, at: str, task: str) -> tuple[int, Mean, Mean]:
    """Return the largest measured k of a checkpoint, and its pass@k at the smallest and the largest k."""
    means = curve(numbers, at, task)
    return max(means), means[min(means)], means[max(means)]


def _mean(numbers: pd.DataFrame, at: str, task: str, name: str) -> Mean:
    return average(measured(numbers, at, f"{task}/{name}"))
