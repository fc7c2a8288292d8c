"""The numbers of a study, read from its logs: one for each run and metric that a claim compares.

If a file has steps, the name of the metric says how the curve becomes a number: `last/reward`,
`last_fifth/reward`, `first_fifth/…`, `mean/…`, `max/…` or `min/…`. A run is left out, with a note, if its
curve is not finite where it is read, or if it ended before other runs of its arm.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.study import references
from analysis.study.document import DISTANCE, STEP, Logs, Study, StudyClaim
from analysis.study.references import Overlay
from analysis.study.runs import EVERY, Key, logs_of, paths, run_name
from encore.errors import UserError, nearest
from encore.runtime.curves import FIFTH

READINGS: dict[
    str, Callable[[np.ndarray, np.ndarray], np.ndarray]
] = {  # first part of a metric's name -> function from steps and values to the values that count
    "last": lambda steps, values: values[-1:],
    "last_fifth": lambda steps, values: values[steps > steps[-1] * (1 - FIFTH)],
    "first_fifth": lambda steps, values: values[steps <= steps[-1] * FIFTH],
    "mean": lambda steps, values: values,
    "max": lambda steps, values: values,
    "min": lambda steps, values: values,
    DISTANCE: lambda steps, values: values,
}
EXTREMES = {"max": np.max, "min": np.min}
Runs = Mapping[Key, tuple[Path, pd.DataFrame]]  # arm and seed of a run -> its file and its rows
TABLE = ["arm", "seed", "node", "metric", "step", "value", "low", "high", "source"]


@dataclass(frozen=True)
class Collected:
    """The numbers of a study, and notes for the reader, such as on runs that were left out."""

    table: pd.DataFrame
    notes: list[str]
    files: dict[str, int]  # place -> number of its files
    overlays: list[Overlay]  # one for each claim on a published curve

    @property
    def seeds(self) -> list[int]:
        """The seeds of the table in rising order."""
        return sorted({int(seed) for seed in self.table.seed})


def collect(study: Study, folder: Path) -> Collected:
    """Read the numbers that the claims of a study compare; `folder` is the folder of the study's file.

    Raises UserError if a place has no files, if two files belong to the same run, or if no file has a metric.
    """
    wanted: dict[str, set[str]] = defaultdict(set)
    for claim in study.claims.values():
        for side in claim.test.sides:
            wanted[side.place.partition("/")[2]].add(side.metric)
    notes: list[str] = []
    files: dict[str, int] = {}
    overlays: list[Overlay] = []
    numbers: list[tuple[Key, str, str, float, float, float, str]] = []
    for place, metrics in wanted.items():
        of_curves = [claim for claim in study.claims.values() if claim.reference and _place(claim) == place]
        axes = {claim.axis for claim in of_curves} - {STEP}
        runs, named = _runs(place, study.runs[place], folder, metrics | axes)
        files[place] = len({path for path, _ in runs.values()})
        for metric in sorted(metrics - {claim.test.metric for claim in of_curves}):
            numbers += [
                (key, place, metric, *number, f"{runs[key][0]} {run_name(key)}")
                for key, number in _numbers_of_runs(place, *named[metric], runs, notes)
            ]
        for claim in of_curves:
            overlays.append(_overlay(claim, named[claim.test.metric][1], folder, runs, notes))
            for seed, number in overlays[-1].distances.items():
                key = (claim.test.of.partition("/")[0], seed)
                source = f"{runs[key][0]} {run_name(key)}"
                numbers.append((key, place, claim.test.metric, number, math.nan, math.nan, source))
    arms = {key[0] for key, *_ in numbers if key[0] is not EVERY}
    seeds = {key[1] for key, *_ in numbers if key[1] is not EVERY}
    if not arms or not seeds:
        raise UserError(
            "runs: no file name has its arm and seed; write {arm} and {seed} into the pattern under files"
        )
    rows = [
        (arm, seed, place, metric, math.nan, value, low, high, source)
        for (own_arm, own_seed), place, metric, value, low, high, source in numbers
        for arm in (sorted(arms) if own_arm is EVERY else [own_arm])
        for seed in (sorted(seeds) if own_seed is EVERY else [own_seed])
    ]
    table = pd.DataFrame(rows, columns=TABLE)
    for row in table[table.duplicated(["arm", "seed", "node", "metric"])].itertuples():
        run = f"{row.arm}, seed {row.seed}"
        raise UserError(f"runs.{row.node}: {row.source} also covers {run}, which has its own file")
    return Collected(table, notes, files, overlays)


def _place(claim: StudyClaim) -> str:
    return claim.test.of.partition("/")[2]


def _overlay(claim: StudyClaim, metric: str, folder: Path, runs: Runs, notes: list[str]) -> Overlay:
    """Return the curves of a claim's arm together with the claim's published curve, and add to `notes`.

    `metric` is the name of the curves in the rows of `runs`.
    """
    arm, _, place = claim.test.of.partition("/")
    curves, axes = (
        {
            seed: _in_order(place, (own_arm, seed), chosen, notes)
            for (own_arm, seed), (_, rows) in runs.items()
            if own_arm == arm and seed is not EVERY and len(chosen := rows[rows.metric == name])
        }
        for name in (metric, claim.axis)
    )
    overlay, told = references.overlay(claim, folder, curves, axes)
    notes += told
    return overlay


def _named(metric: str, names: Iterable[str]) -> tuple[str, str]:
    """Split a metric into a key of READINGS and a name: `last/reward` into `last` and `reward`.

    A metric that is among `names` itself, or begins with no such key, is a plain number: the key is then "".
    """
    reading, slash, name = metric.partition("/")
    return (reading, name) if metric not in names and slash and reading in READINGS else ("", metric)


def _runs(
    place: str, logs: Logs, folder: Path, metrics: set[str]
) -> tuple[dict[Key, tuple[Path, pd.DataFrame]], dict[str, tuple[str, str]]]:
    """Return the runs of a place, and each of `metrics` -> its reading and its name in the rows (_named()).

    Raises UserError if two files are of the same run, or if no file has one of the metrics.
    """
    wanted = metrics | {_named(metric, ())[1] for metric in metrics}
    runs: dict[Key, tuple[Path, pd.DataFrame]] = {}
    raw: set[str] = set()
    for log in logs_of([*paths(place, logs, folder)], logs, wanted):
        for run, (names, part) in log.runs.items():
            if run in runs:
                raise UserError(f"runs.{place}: {runs[run][0]} and {log.path} both belong to {run_name(run)}")
            raw |= names
            runs[run] = (log.path, part)
    named = {metric: _named(metric, logs.metrics or raw) for metric in metrics}
    for _, name in sorted(named.values()):
        if logs.metrics and name not in logs.metrics:
            raise UserError(f'runs.{place}.metrics: no "{name}"{nearest(name, sorted(logs.metrics))}')
        theirs = (logs.metrics or {}).get(name, name)
        if theirs not in raw:
            raise UserError(f'runs.{place}: no file has a metric "{theirs}"{nearest(theirs, sorted(raw))}')
    return runs, named


def _numbers_of_runs(
    place: str, reading: str, name: str, runs: Runs, notes: list[str]
) -> Iterator[tuple[Key, tuple[float, float, float]]]:
    """Yield the key of each run with its number and the ends of its interval: value, low, high.

    Runs without a number are left out, with a note. Raises UserError if the metric has steps and `reading`
    is "".
    """
    curves: dict[Key, pd.DataFrame] = {}
    for key, (path, rows) in runs.items():
        chosen = rows[rows.metric == name]
        if not len(chosen):
            notes.append(f"{place}: {run_name(key)} has no {name}: left out")
        elif not reading:
            if chosen.step.notna().any() or len(chosen) > 1:
                raise UserError(
                    f"{path}: {name} has steps; say how it is read: last_fifth/{name}, last/{name}"
                )
            if math.isfinite(chosen.value.iloc[0]):
                yield key, tuple(chosen[["value", "low", "high"]].iloc[0])
            else:
                notes.append(f"{place}: {run_name(key)}: {name} is {chosen.value.iloc[0]}: left out")
        else:
            curves[key] = _in_order(place, key, chosen, notes)
    if reading:
        yield from _of_curves(place, reading, name, curves, notes)


def _in_order(place: str, key: Key, rows: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return a curve sorted by step, and note what changed; if a step occurs twice, the later row counts."""
    if rows.step.is_monotonic_increasing and rows.step.is_unique:
        return rows
    again, falls = int(rows.step.duplicated().sum()), int((rows.step.diff() < 0).sum())
    if falls and not again:
        notes.append(
            f"{place}: {run_name(key)}: the step falls {falls} times: the rows are read by rising step"
        )
    if again:
        notes.append(
            f"{place}: {run_name(key)}: {again} steps come again, as after a resume: the later rows count"
        )
    return rows.drop_duplicates("step", keep="last").sort_values("step")


def _of_curves(
    place: str, reading: str, name: str, curves: Mapping[Key, pd.DataFrame], notes: list[str]
) -> Iterator[tuple[Key, tuple[float, float, float]]]:
    ends: dict[str | None, float] = {}
    for (arm, _), rows in curves.items():
        ends[arm] = max(ends.get(arm, 0.0), rows.step.iloc[-1])
    if len(set(ends.values())) > 1:
        said = ", ".join(f"{arm} {end:g}" for arm, end in ends.items())
        notes.append(f"{place}: arms end at different steps ({said}): each is read at its own end")
    for key, rows in curves.items():
        last = rows.step.iloc[-1]
        values = READINGS[reading](rows.step.to_numpy(), rows.value.to_numpy())
        if last < ends[key[0]]:
            notes.append(f"{place}: {run_name(key)} ended at step {last:g} of {ends[key[0]]:g}: left out")
        elif not len(values) or not np.isfinite(values).all():
            notes.append(
                f"{place}: {run_name(key)}: {name} is not a finite number where it is read: left out"
            )
        else:
            yield key, (float(EXTREMES.get(reading, np.mean)(values)), math.nan, math.nan)
