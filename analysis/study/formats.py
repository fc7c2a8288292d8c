"""The readers of files that trainers and evaluations write; they return rows of step, metric and value.

The form of a file is recognised by its content.

| written by                                     | form                                                     |
|------------------------------------------------|----------------------------------------------------------|
| anything                                       | CSV with a header and a row for each step; the columns   |
|                                                | arm and seed if it has several runs                      |
| Encore (curve.csv)                             | CSV with the columns step, metric, value                 |
| Encore (numbers.csv of a study)                | CSV with metric, value, low and high, and no step        |
| anything; verl's file logger, prime-rl         | JSON lines, an object a step; nested names joined by `/` |
| transformers and TRL (trainer_state.json)      | JSON with log_history                                    |
| lm-eval (results_*.json)                       | JSON with results; no step                               |
| verl (console)                                 | lines `step:10 - critic/rewards/mean:0.5 - …`            |
| open-instruct (console)                        | rich's panels `Metrics`, of which one says training_step |
| inspect_ai (JSON; .eval is refused)            | JSON with eval, status and results; no step              |
| TensorBoard                                    | event files                                              |
| trackio (PROJECT.db)                           | SQLite; `RUN - METRIC`, as W&B's exports name a column   |
| W&B, offline (run-*.wandb)                     | records of its own; `RUN - METRIC` too                   |
"""

import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.study import consoles, inspect_logs, trackio, wandb
from analysis.verdicts.pairs import NORMAL
from encore.errors import UserError, first_line

LARGEST = 1 << 30  # bytes of the largest file that is read
TOGETHER = 200  # lines of JSON that are parsed at once
STEPS = ("step", "global_step", "_step", "Step", "train/global_step", "training/global_step", "iteration")
OF_A_RUN = ["arm", "seed"]  # columns of a CSV with several runs
NAN = re.compile(r"(?i)(?:^|,)[ \t]*[-+]?(?:nan|inf(?:inity)?)[ \t]*(?:,|$)", re.MULTILINE)
Entry = Mapping[str, object]  # a JSON object that some tool has written
Point = tuple[float, Mapping[str, float]]  # a step, and metric -> number logged at this step
Final = tuple[str, float, float]  # name, value and standard error of a number without a step
# step is NaN for a final number; low and high are its 95% interval
COLUMNS = ["step", "metric", "value", "low", "high"]
# texts that trackio writes for numbers that are not finite
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
EVENTS = "events.out.tfevents"  # part of the names of TensorBoard's files


def read_log(path: Path, step: str | None) -> pd.DataFrame:
    """Return the rows of a file, with the columns COLUMNS, and `arm` and `seed` for a CSV that has them.

    `step` is the file's name for the step; None if it is one of STEPS. Raises UserError if the file is too
    large, has none of the forms of this module, or lacks the step.
    """
    if path.stat().st_size > LARGEST:
        raise UserError(f"{path}: {path.stat().st_size:,} bytes; a log of more than {LARGEST:,} is not read")
    if EVENTS in path.name:
        return _rows(_of_tensorboard(path))
    try:
        if _begins(path, trackio.HEAD):
            return _rows(_of_trackio(path, step))
        if _begins(path, wandb.HEAD):
            run = wandb.run(path)
            return _rows(_with_run(run.name, _of_entries(path, run.entries, step)))
        if _begins(path, inspect_logs.ZIP):
            inspect_logs.refuse_zip(path)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a text: {first_line(error)}") from None
    first = text.lstrip()[:1]
    if not first:
        raise UserError(f"{path}: empty")
    if first == "{":
        whole = _json(text)
        if isinstance(whole, dict) and isinstance(whole.get("log_history"), list):
            return _rows(_of_entries(path, whole["log_history"], step))
        if isinstance(whole, dict) and inspect_logs.is_log(whole):
            return _finals_within(inspect_logs.scores(path, whole))
        if isinstance(whole, dict) and isinstance(whole.get("results"), dict):
            return _finals_within(_of_lm_eval(whole["results"]))
        return _rows(_of_entries(path, _lines(path, text), step))
    if consoles.is_of_verl(text):
        return _rows(consoles.of_verl(text))
    if consoles.is_of_open_instruct(text):
        name = step or consoles.TRAINING_STEP
        return _rows(_of_entries(path, consoles.of_open_instruct(text, name), name))
    return _of_table(path, text, step)


def _begins(path: Path, head: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(head)) == head


def _rows(points: Iterable[Point]) -> pd.DataFrame:
    """Return a row for each number of the points, grouped by metric and otherwise in their order.

    Points whose step is not finite are left out.
    """
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for step, numbers in points:
        for metric, value in numbers.items():
            steps, values = curves.get(metric) or curves.setdefault(metric, ([], []))
            steps.append(step)
            values.append(value)
    codes = np.repeat(np.arange(len(curves)), [len(steps) for steps, _ in curves.values()])
    metrics = pd.Categorical.from_codes(codes, pd.Index([*curves], dtype=str))
    at = np.array([*chain.from_iterable(steps for steps, _ in curves.values())], dtype=float)
    logged = np.array([*chain.from_iterable(values for _, values in curves.values())], dtype=float)
    frame = pd.DataFrame({"step": at, "metric": metrics, "value": logged, "low": math.nan, "high": math.nan})
    return frame[np.isfinite(at)]


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _lines(path: Path, text: str) -> Iterator[Entry]:
    """Yield the JSON object in each line; parsing TOGETHER lines at once takes half the time.

    Raises UserError if a line is no JSON object.
    """
    lines = text.split("\n")  # not splitlines(), which also splits at characters that JSON strings may have
    for first in range(0, len(lines), TOGETHER):
        block = {first + i: line for i, line in enumerate(lines[first : first + TOGETHER], 1) if line.strip()}
        entries = _json(f"[{','.join(block.values())}]")
        if entries is None or len(entries) != len(block) or {*map(type, entries)} != {dict}:
            entries = [_object(path, number, line) for number, line in block.items()]
        yield from entries


def _object(path: Path, number: int, line: str) -> Entry:
    entry = _json(line)
    if not isinstance(entry, dict):
        raise UserError(f"{path}: line {number}: expected a JSON object, got {line.strip()[:40]!r}")
    return entry


def _of_entries(path: Path, entries: Iterable[object], step: str | None) -> Iterator[Point]:
    """Yield step and numbers of each JSON object that has a step. Raises UserError if none has."""
    has_step = False
    for entry in entries:
        numbers = _numbers(entry) if isinstance(entry, dict) else {}
        at = numbers.pop(step or next(filter(numbers.__contains__, STEPS), ""), None)
        if at is not None:
            has_step = True
            yield at, numbers
    if not has_step:
        raise UserError(_without_step(path, step))


def _without_step(path: Path, step: str | None) -> str:
    return f"{path}: no column of the step ({step or ', '.join(STEPS)}); name it with step:"


def _numbers(entry: Entry, before: str = "", depth: int = 0) -> dict[str, float]:
    """Return name -> number for each number in a JSON object; nested names are joined by `/`."""
    numbers = {}
    for name, value in entry.items():
        if type(value) is float:  # not isinstance, which is slower, and takes a bool for an int
            numbers[before + name] = value
        elif type(value) is int:
            numbers[before + name] = _float(value)
        elif isinstance(value, dict) and depth < 8:
            numbers |= _numbers(value, f"{before}{name}/", depth + 1)
    return numbers


def _float(number: float) -> float:
    """Return a number of JSON as a float; a whole number that is too large becomes infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _of_lm_eval(results: Entry) -> Iterator[Final]:
    """Yield each result of lm-eval, named `task/metric`, or `task/metric,filter` if it has a filter."""
    for task, metrics in results.items():
        numbers = _numbers(metrics) if isinstance(metrics, dict) else {}
        for name, value in numbers.items():
            metric, _, filtered = name.partition(",")
            if metric.endswith("_stderr"):
                continue
            error = numbers.get(f"{metric}_stderr,{filtered}", math.nan)
            label = f"{task}/{metric}" + ("" if filtered in ("", "none") else f",{filtered}")
            yield label, value, error


def _finals_within(finals: Iterable[Final]) -> pd.DataFrame:
    """Return a row for each number, with the 95% interval that follows from its standard error."""
    rows = [
        (math.nan, name, value, value - NORMAL * error, value + NORMAL * error)
        for name, *numbers in finals
        for value, error in [map(_float, numbers)]
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_trackio(path: Path, step: str | None) -> Iterator[Point]:
    """Yield the points of all runs in a database of trackio; metrics are named `RUN - METRIC`."""
    runs: dict[str, list[Entry]] = {}
    for row in trackio.rows(path):
        logged = _json(row.metrics)
        if isinstance(logged, dict):
            numbers = {name: NOT_FINITE.get(str(value), value) for name, value in logged.items()}
            runs.setdefault(row.run, []).append(numbers | {"step": row.step})
    for name, entries in runs.items():
        yield from _with_run(name, _of_entries(path, entries, step))


def _with_run(run: str, points: Iterable[Point]) -> Iterator[Point]:
    """Yield the points with each metric renamed to `RUN - METRIC`."""
    for at, numbers in points:
        yield at, {f"{run} - {metric}": value for metric, value in numbers.items()}


def _of_tensorboard(path: Path) -> Iterator[Point]:
    try:
        # imported here, because few studies have such files, and the package may be missing
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        raise UserError(f"{path}: to read it: pip install tensorboard") from None
    events = EventAccumulator(str(path), size_guidance={"scalars": 0}).Reload()
    for metric in events.Tags()["scalars"]:
        yield from ((float(event.step), {metric: float(event.value)}) for event in events.Scalars(metric))


def _of_table(path: Path, text: str, step: str | None) -> pd.DataFrame:
    """Return the rows of a CSV with a column for each metric, or with the columns step, metric and value.

    An empty cell was not logged and has no row; a cell with `nan` was logged and has one.
    """
    try:
        frame = pd.read_csv(io.StringIO(text))
        nan = frame.isna().to_numpy().any() and NAN.search(text)
        words = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False) if nan else None
    except (ValueError, pd.errors.ParserError) as error:
        raise UserError(f"{path}: not a CSV: {first_line(error)}") from None
    name = step or next((name for name in STEPS if name in frame.columns), None)
    if name is None and {"metric", "value"} <= {*frame.columns}:
        return _finals(frame)
    if name is None or name not in frame.columns:
        raise UserError(_without_step(path, step))
    if not pd.api.types.is_numeric_dtype(frame[name]):
        raise UserError(f"{path}: column {name}: expected numbers, got {frame[name].iloc[0]!r}")
    keys = [name, *(key for key in OF_A_RUN if key in frame.columns)]
    long = _long(frame, keys)
    logged = long.value.notna() if words is None else _long(words[frame.columns], keys).value != ""
    long = long[logged].rename(columns={name: "step"})
    long = long.assign(value=pd.to_numeric(long.value, errors="coerce"), low=math.nan, high=math.nan)
    return long[long.step.notna()].reset_index(drop=True)


def _finals(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a CSV without steps: metric, value, and low and high (nan if the CSV lacks them)."""
    numbers = {
        name: pd.to_numeric(frame[name], errors="coerce") if name in frame.columns else math.nan
        for name in ("value", "low", "high")
    }
    return frame[[*(key for key in OF_A_RUN if key in frame.columns), "metric"]].assign(
        step=math.nan, **numbers
    )


def _long(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return a table in long form, with columns metric and value beside `keys`, which are not metrics."""
    if {"metric", "value"} <= {*frame.columns}:
        return frame[[*keys, "metric", "value"]]
    return frame.melt(keys, var_name="metric", value_name="value")
