"""The runs of a place of a study: its log files, and the arm and the seed of each run in them.

If the files are large, they are read in parallel, by a process for each core.
"""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from analysis.study.document import Logs
from analysis.study.formats import OF_A_RUN, read_log
from encore.errors import UserError

FIELDS = {"arm": r"[^/]+?", "seed": r"\d+", "metric": r".+"}
EVERY = None  # in place of an arm or a seed: the run counts for all arms, or for all seeds
Key = tuple[str | None, int | None]  # arm and seed
LARGE = 50_000_000  # total bytes of files that are worth starting processes


class Log(NamedTuple):
    """The content of a file: for each run, the names of all metrics, and the rows of the wanted metrics."""

    path: Path
    runs: Mapping[Key, tuple[set[str], pd.DataFrame]]


def logs_of(files: list[tuple[Path, Key]], logs: Logs, wanted: set[str]) -> Iterator[Log]:
    """Yield the content of each file, with the rows of the metrics `wanted`.

    `files` are paths with the arm and the seed that they name. Raises UserError if a process dies.
    """
    of_file = partial(_log, logs, wanted)
    if sum(path.stat().st_size for path, _ in files) < LARGE:
        yield from map(of_file, files)
        return
    try:
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            yield from pool.map(of_file, files, chunksize=4)
    except BrokenProcessPool:
        raise UserError(f"{files[0][0]} and others: a process that read them ended: out of memory?") from None


def _log(logs: Logs, wanted: set[str], file: tuple[Path, Key]) -> Log:
    """Return the content of a file; `file`: its path, and the arm and the seed that the path names."""
    path, key = file
    ours = {theirs: our_name for our_name, theirs in (logs.metrics or {}).items()}
    runs: dict[Key, tuple[set[str], pd.DataFrame]] = {}
    for run, part in _parts(path, read_log(path, logs.step), logs, key):
        if run in runs:
            raise UserError(f"{path}: two of its runs are of {run_name(run)}")
        names = {*part.metric.unique()}
        part = part.assign(metric=part.metric.map(ours)) if logs.metrics else part
        runs[run] = (names, part[part.metric.isin(wanted)].reset_index(drop=True))
    return Log(path, runs)


def paths(place: str, logs: Logs, folder: Path) -> Iterator[tuple[Path, Key]]:
    """Yield each file that matches a pattern of a place, with the arm and the seed that its path names.

    Raises UserError if a pattern is no relative path, or matches no file.
    """
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
    """Return a pattern as a regular expression; a field that occurs twice must have the same text twice."""
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
    """Yield arm, seed and rows of each run in a file: one run, or the runs that its columns name."""
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


def run_name(key: Key) -> str:
    arm, seed = key
    return f"{'all arms' if arm is EVERY else arm}, {'all seeds' if seed is EVERY else f'seed {seed}'}"
