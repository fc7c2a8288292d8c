"""Learning curves, and the numbers that summarise them, from a trainer's log history."""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from typing import Any

Row = tuple[int, str, float]  # step, metric, value

FIFTH = 0.2  # the first and the last share of the steps over which `first_fifth` and `last_fifth/` average
# entries of a log that are the trainer's bookkeeping
NOT_MEASURED = {"step", "epoch", "total_flos", "num_input_tokens_seen"}
RATIOS = ("ratio/deviation", "ratio/token_std", "ratio/sequence_std", "clip_fraction")
LEAST_CLIPPED = 1e-6  # smallest clip fraction of which the logarithm is taken
TIMED = {"step_time", "tokens_per_s"}


def rows(history: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return a row for each step and metric in a trainer's log, without the summary after its last step."""
    return [
        (int(entry["step"]), name, float(value))
        for entry in history
        if "train_runtime" not in entry
        for name, value in sorted(entry.items())  # sorted, because a resumed history has another order
        if name not in NOT_MEASURED and isinstance(value, int | float) and math.isfinite(value)
    ]


def deterministic(curve: Iterable[Row]) -> list[Row]:
    """Return the curve without times, so that a repeated run gives the same bytes."""
    return [row for row in curve if row[1] not in TIMED]


def timing(curve: Iterable[Row]) -> list[Row]:
    """Return the rows `step_time`, in seconds, and `tokens_per_s` between each two logged steps."""
    timed: list[Row] = []
    counted: dict[int, float] = {}
    seconds: dict[int, float] = {}
    for step, name, value in curve:
        if name == "step_time":
            seconds[step] = value
        elif name == "num_tokens":
            counted[step] = value
    before = 0.0
    for step in sorted(seconds):
        timed.append((step, "step_time", seconds[step]))
        now = counted.get(step, before)
        if now > before and seconds[step] > 0:
            timed.append((step, "tokens_per_s", (now - before) / seconds[step]))
        before = now
    return timed


def text(curve: Iterable[Row]) -> str:
    """Return CSV with the columns step, metric, value; floats have all digits, as Python prints them."""
    return "step,metric,value\n" + lines(curve)


def lines(curve: Iterable[Row]) -> str:
    """Return the rows of `text` without the heading."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows((step, name, repr(value)) for step, name, value in curve)
    return out.getvalue()


def scalars(curve: list[Row]) -> dict[str, float]:
    """Return the scalars of a curve.

    They are `last/<metric>`, the last value; `last_fifth/<metric>`, the mean over the last fifth of the
    steps; and the scalars of `ratios`.
    """
    if not curve:
        return {}
    after = max(step for step, _, _ in curve) * (1 - FIFTH)
    values: dict[str, list[float]] = {}
    tails: dict[str, list[float]] = {}
    for step, name, value in curve:
        values.setdefault(name, []).append(value)
        if step > after:
            tails.setdefault(name, []).append(value)
    last = {f"last/{name}": column[-1] for name, column in values.items()} | ratios(values)
    return last | {f"last_fifth/{name}": sum(column) / len(column) for name, column in tails.items()}


def ratios(values: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the scalars of ratios: `mean/<metric>`, `mean/log10_clip_fraction`, `max/ratio_deviation`."""
    summary = {f"mean/{name}": sum(values[name]) / len(values[name]) for name in RATIOS if name in values}
    if "mean/clip_fraction" in summary:
        fraction = max(summary["mean/clip_fraction"], LEAST_CLIPPED)
        summary["mean/log10_clip_fraction"] = math.log10(fraction)
    if "ratio/deviation" in values:
        summary["max/ratio_deviation"] = max(values["ratio/deviation"])
    return summary


def first_fifth(curve: list[Row], metric: str) -> float | None:
    """Return the mean of `metric` over the first fifth of the steps; None if it was not logged then."""
    until = FIFTH * max((step for step, _, _ in curve), default=0)
    values = [value for step, name, value in curve if name == metric and step <= until]
    return sum(values) / len(values) if values else None


def first_fifths(curve: list[Row], metrics: Iterable[str]) -> dict[str, float]:
    """Return `first_fifth/<metric>` of each of `metrics` that was logged in the first fifth of the steps."""
    means = {f"first_fifth/{name}": first_fifth(curve, name) for name in metrics}
    return {name: value for name, value in means.items() if value is not None}
