"""The numbers of a study: one for each run and metric that a claim compares, from the logs.

The metric says how the curve in a file with steps is read: `last/reward`, `last_fifth/reward`,
`first_fifth/…`, `mean/…`, `max/…` or `min/…`. Nothing is averaged away: a run has no number if its curve is
not finite where it is read, or if it ended before other runs of its arm; a note then says so.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.study.document import Logs, Study
from analysis.study.formats import OF_A_RUN, read_log
from encore.errors import UserError, nearest
from encore.runtime.curves import FIFTH

FIELDS = {"arm": r"[^/]+?", "seed": r"\d+", "metric": r".+"}
READINGS: dict[
    str, Callable[[np.ndarray, np.ndarray], np.ndarray]
] = {  # takes steps and values, returns the values read
    "last": lambda steps, values: values[-1:],
    "last_fifth": lambda steps, values: values[steps > steps[-1] * (1 - FIFTH)],
    "first_fifth": lambda steps, values: values[steps <= steps[-1] * FIFTH],
    "mean": lambda steps, values: values,
    "max": lambda steps, values: values,
    "min": lambda steps, values: values,
}
EXTREMES = {"max": np.max, "min": np.min}
EVERY = None  # used instead of an arm or a seed: all of them
TABLE = ["arm", "seed", "node", "metric", "step", "value", "low", "high", "source"]
Key = tuple[str | None, int | None]  # arm and seed of a run


@dataclass(frozen=True)
class Collected:
    """The numbers of a study, and notes for the reader about how they were read."""

    table: pd.DataFrame
    notes: list[str]
    files: dict[str, int]  # place -> number of its files

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
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
    numbers: list[tuple[Key, str, str, float, float, float, str]] = []
    for place, metrics in wanted.items():
        runs, named = _runs(place, study.runs[place], folder, metrics)
        files[place] = len({path for path, _ in runs.values()})
        for metric in sorted(metrics):
            numbers += [
                (key, place, metric, *number, f"{runs[key][0]} {_run(key)}")
                for key, number in _numbers_of_runs(place, *named[metric], runs, notes)
            ]
    arms = {key[0] for key, *_ in numbers if key[0] is not EVERY}
    seeds = {key[1] for key, *_ in numbers if key[1] is not EVERY}
    if not arms or not seeds:
        raise UserError("runs: no file name has its arm and seed; write {arm} and {seed} into files")
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
    return Collected(table, notes, files)


def _named(metric: str, names: Iterable[str]) -> tuple[str, str]:
    """Return how a metric is read ("" for a plain number), and the name among `names` that it reads."""
    reading, slash, name = metric.partition("/")
    return (reading, name) if metric not in names and slash and reading in READINGS else ("", metric)


def _runs(
    place: str, logs: Logs, folder: Path, metrics: set[str]
) -> tuple[dict[Key, tuple[Path, pd.DataFrame]], dict[str, tuple[str, str]]]:
    """Return the file and the rows of each run of a place, and for each metric its reading and name."""
    ours = {theirs: our_name for our_name, theirs in (logs.metrics or {}).items()}
    wanted = metrics | {_named(metric, ())[1] for metric in metrics}
    runs: dict[Key, tuple[Path, pd.DataFrame]] = {}
    raw: set[str] = set()
    for path, key in _paths(place, logs, folder):
        rows = read_log(path, logs.step)
        for run, part in _parts(path, rows, logs, key):
            if run in runs:
                raise UserError(f"runs.{place}: {runs[run][0]} and {path} both belong to {_run(run)}")
            raw |= {*part.metric.unique()}
            part = part.assign(metric=part.metric.map(ours)) if logs.metrics else part
            runs[run] = (path, part[part.metric.isin(wanted)])
    named = {metric: _named(metric, logs.metrics or raw) for metric in metrics}
    for _, name in sorted(named.values()):
        if logs.metrics and name not in logs.metrics:
            raise UserError(f'runs.{place}.metrics: no "{name}"{nearest(name, sorted(logs.metrics))}')
        theirs = (logs.metrics or {}).get(name, name)
        if theirs not in raw:
            raise UserError(f'runs.{place}: no file has a metric "{theirs}"{nearest(theirs, sorted(raw))}')
    return runs, named


def _paths(place: str, logs: Logs, folder: Path) -> Iterator[tuple[Path, Key]]:
    """Yield the files of a place, each once, with the arm and the seed that their names contain."""
    for pattern in logs.files:
        if not pattern or Path(pattern).is_absolute():
            raise UserError(f"runs.{place}.files: {pattern}: expected a path from the folder of the study on")
        wild = re.sub(r"\{(arm|seed)\}", "*", pattern)
        named = _expression(pattern)
        paths = sorted(path for path in folder.glob(wild) if path.is_file())
        matched = [(path, named.fullmatch(path.relative_to(folder).as_posix())) for path in paths]
        fitting = [(path, match) for path, match in matched if match]
        if not fitting:
            raise UserError(f"runs.{place}.files: no file {folder / pattern}")
        yield from ((path, _key(match.groupdict())) for path, match in fitting)


def _expression(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern. A field that occurs twice must have the same text."""
    expression, seen = "", set[str]()
    for part in re.split(r"(\{(?:arm|seed|metric)\}|\*)", pattern):
        name = part[1:-1]
        if part == "*":
            expression += "[^/]*"
        elif part.startswith("{") and name in FIELDS:
            expression += f"(?P={name})" if name in seen else f"(?P<{name}>{FIELDS[name]})"
            seen.add(name)
        else:
            expression += re.escape(part)
    return re.compile(expression)


def _key(fields: Mapping[str, str]) -> Key:
    return fields.get("arm", EVERY), int(fields["seed"]) if "seed" in fields else EVERY


def _parts(path: Path, rows: pd.DataFrame, logs: Logs, key: Key) -> Iterator[tuple[Key, pd.DataFrame]]:
    """Yield the runs in a file: a single run, or several that its columns tell apart."""
    if logs.columns:
        named = _expression(logs.columns)
        fields = {
            name: match.groupdict() for name in rows.metric.unique() if (match := named.fullmatch(name))
        }
        rows = rows[rows.metric.isin(fields)]
        keys = rows.metric.map(lambda name: _key({**fields[name]}))
        rows = rows.assign(metric=rows.metric.map(lambda name: fields[name].get("metric", name)))
        for run in dict.fromkeys(keys):
            yield (run[0] or key[0], key[1] if run[1] is EVERY else run[1]), rows[keys == run]
    elif {*OF_A_RUN} <= {*rows.columns}:
        seeds = pd.to_numeric(rows.seed, errors="coerce")
        if not (seeds % 1 == 0).all():
            raise UserError(f"{path}: column seed: expected whole numbers")
        for (arm, seed), part in rows.assign(seed=seeds.astype(int)).groupby(OF_A_RUN, sort=True):
            yield (str(arm), int(str(seed))), part
    else:
        yield key, rows


def _numbers_of_runs(
    place: str, reading: str, name: str, runs: Mapping[Key, tuple[Path, pd.DataFrame]], notes: list[str]
) -> Iterator[tuple[Key, tuple[float, float, float]]]:
    """Yield the number of each run that has one, with its interval.

    Add a note for each run without a number.
    """
    curves: dict[Key, pd.DataFrame] = {}
    for key, (path, rows) in runs.items():
        chosen = rows[rows.metric == name]
        if not len(chosen):
            notes.append(f"{place}: {_run(key)} has no {name}: left out")
        elif not reading:
            if chosen.step.notna().any() or len(chosen) > 1:
                raise UserError(
                    f"{path}: {name} has steps; say how it is read: last_fifth/{name}, last/{name}"
                )
            if math.isfinite(chosen.value.iloc[0]):
                yield key, tuple(chosen[["value", "low", "high"]].iloc[0])
            else:
                notes.append(f"{place}: {_run(key)}: {name} is {chosen.value.iloc[0]}: left out")
        else:
            curves[key] = _in_order(place, key, chosen, notes)
    if reading:
        yield from _of_curves(place, reading, name, curves, notes)


def _in_order(place: str, key: Key, rows: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the curve by rising step; if a step occurs twice, the later row counts."""
    again = int(rows.step.duplicated().sum())
    if again:
        notes.append(
            f"{place}: {_run(key)}: {again} steps come again, as after a resume: the later rows count"
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
            notes.append(f"{place}: {_run(key)} ended at step {last:g} of {ends[key[0]]:g}: left out")
        elif not len(values) or not np.isfinite(values).all():
            notes.append(f"{place}: {_run(key)}: {name} is not a finite number where it is read: left out")
        else:
            yield key, (float(EXTREMES.get(reading, np.mean)(values)), math.nan, math.nan)


def _run(key: Key) -> str:
    arm, seed = key
    return f"{'all arms' if arm is EVERY else arm}, {'all seeds' if seed is EVERY else f'seed {seed}'}"
