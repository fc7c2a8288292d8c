"""The differences that decide a claim, `of` minus `against` paired by seed; or why they are missing.

In a claim on `updates_to/` or `samples_to/` some runs may never have reached the level. Both sides then stop
at the smaller budget of the two: a run that had not reached the level by then counts as that budget (the
restricted time of survival analysis, Royston & Parmar 2013), so that no arm gains by a longer run or by
giving up. Such a difference is a bound: the true difference is at least as large if `of` did not reach the
level, and at most as large if `against` did not. Pairs records which bound it is, because no verdict may
depend on the unknown side. If neither reached the level, nothing is known, and the seed is left out.

Differences are independent only if the runs on both sides are. If some seeds share a run on either side, only
the first of these seeds counts. If all seeds share one run on one side only, most often the base model, all
differences count, as the runs on the other side are independent. But the error of the shared run is the same
in each difference, so the spread between seeds does not show it. Its standard error follows from the run's
own 95% interval, over items and samples, and enters every test and interval once. If the error is unknown,
the seeds together count once.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.numbers.curve_metrics import budget_of
from analysis.numbers.recorded import DECIMALS
from analysis.numbers.table import measured
from analysis.statistics.intervals import TAIL
from encore.recipe.claims import FRONTIER, Comparison, Side

NORMAL = stats.norm.isf(TAIL)  # half-width of an evaluation's 95% interval, in standard errors


@dataclass(frozen=True)
class Pairs:
    """The differences of a claim, one for each seed that counts.

    at_least, at_most: whether some true differences may be larger, or smaller, than the one given.
    error: the standard error of a run that is one side of every difference; 0 if there is no such run.
    """

    seeds: tuple[int, ...] = ()
    differences: tuple[float, ...] = ()
    at_least: bool = False
    at_most: bool = False
    error: float = 0.0
    notes: tuple[str, ...] = ()


def pairs(comparison: Comparison, table: pd.DataFrame, seeds: Iterable[int]) -> Pairs:
    """Return the differences of a claim or a gate for `seeds`; if there are none, the notes say why.

    `table` has the final numbers.
    """
    compared = list(comparison.sides)
    reason = next((why for at, metric in compared if (why := _absent(table, at, metric))), "")
    if reason:
        return Pairs(notes=(reason,))
    return _subtract(table, compared, list(seeds))


def _subtract(table: pd.DataFrame, sides: list[Side], seeds: list[int]) -> Pairs:
    measured_sides = [_side(table, at, metric) for at, metric in sides]
    # if both sides have the same unit, they have a common budget
    if len({budget_of(metric) or metric for _, metric in sides}) == 1:
        least = pd.concat([side.budget for side in measured_sides], axis=1).min(axis=1, skipna=False)
        measured_sides = [side.assign(budget=least.reindex(side.index)) for side in measured_sides]
    of, against = _stopped(measured_sides[0]), _stopped(measured_sides[-1])
    if len(sides) == 1:
        against = of.assign(value=0.0, late=False)
    columns = {"d": of.value - against.value, "of": of.source, "against": against.source}
    frame = pd.DataFrame(columns).dropna()
    frame = frame[frame.index.isin(seeds)]
    for side, numbers in (("of", of), ("against", against)):
        frame[f"{side}_late"] = numbers.late.reindex(frame.index)
        frame[f"{side}_error"] = numbers.error.reindex(frame.index)
    missing = [seed for seed in seeds if seed not in frame.index]
    notes = [f"no number for seed {_list(missing)}"] if missing else []
    for (at, _), late in zip(sides, ("of_late", "against_late"), strict=False):
        if count := int(frame[late].sum()):
            notes.append(f"{at} did not reach it with {count} of {len(frame)} seeds: the budget is counted")
    neither = frame.of_late & frame.against_late
    if neither.any():
        notes.append(f"neither reached it with seed {_list(frame.index[neither])}: left out")
    known = frame[~neither]
    alone, error, shared = _independent(known, [at for at, _ in sides])
    return Pairs(
        seeds=tuple(int(seed) for seed in alone.index),
        differences=tuple(alone.d.tolist()),
        at_least=bool(alone.of_late.any()),
        at_most=bool(alone.against_late.any()),
        error=error,
        notes=(*notes, *shared),
    )


def _independent(known: pd.DataFrame, places: list[str]) -> tuple[pd.DataFrame, float, list[str]]:
    """Return the rows of independent differences, the standard error that they share, and notes.

    `known` has a row for each seed, with the columns d, of, against (the run of each side), of_error and
    against_error.
    """
    runs = known[["of", "against"]].nunique()
    # at most one side has a single run
    single = [side for side in runs.index if runs[side] == 1 < runs.max()]
    alone = known
    for side in runs.index.difference(single):
        alone = alone.drop_duplicates(side)
    notes, error = [], 0.0
    if len(alone) < len(known):
        notes.append(f"{len(known)} seeds share {len(alone)} model{'s' * (len(alone) > 1)}")
    for side in single:
        at, error = places[side == "against"], float(known[f"{side}_error"].iloc[0])
        text = f"{at} is one run for all {len(known)} seeds"
        if not error > 0 and (math.isnan(error) or constant(alone.d.to_list())):
            return alone[:1], 0.0, [*notes, f"{text}, of unknown error: they count once"]
        notes.append(f"{text}: its own standard error, {error:.3g}, counts once")
    return alone, error, notes


def constant(differences: Sequence[float]) -> bool:
    """Return whether all differences are the same number, apart from the rounding of floats."""
    return np.ptp(differences) <= 1e-12 * max(map(abs, differences))


def _side(table: pd.DataFrame, at: str, metric: str) -> pd.DataFrame:
    """Return a row for each seed, with the columns value, source, error and budget.

    `error` is the standard error from an evaluation's own interval, otherwise nan. The interval is rounded as
    in a record, so that judging the record gives the verdicts of its run. `budget` is nan except for metrics
    `…_to/`.
    """
    every = measured(table, at, metric).round({"low": DECIMALS, "high": DECIMALS})
    numbers = every[["value", "source"]].assign(error=(every.high - every.low) / (2 * NORMAL))
    budget = budget_of(metric)
    return numbers.assign(budget=measured(table, at, budget).value if budget else np.nan)


def _stopped(side: pd.DataFrame) -> pd.DataFrame:
    """Return the side with values above the budget, or missing, replaced by it; column `late` marks them."""
    late = side.budget.notna() & ~(side.value <= side.budget)
    return side.assign(value=side.value.mask(late, side.budget), late=late)


def _absent(table: pd.DataFrame, at: str, metric: str) -> str:
    """Return why `metric` has no number at the place `at`; "" if it has one."""
    arm, _, node = at.partition("/")
    if len(measured(table, at, metric)):
        return ""
    if arm == FRONTIER:
        return f"no {metric} at {at}: no seed has a number at each of its places"
    if arm not in set(table.arm):
        return f"arm {arm} was not run"
    metrics = table.metric[(table.arm == arm) & (table.node == node) & table.step.isna()].unique()
    near = get_close_matches(metric, list(metrics), n=1, cutoff=0.5)
    return f"no {metric} at {at}" + (f"; nearest: {near[0]}" if near else "")


def _list(seeds: Iterable[Any]) -> str:
    return ", ".join(str(seed) for seed in seeds)
