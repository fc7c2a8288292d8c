"""Means over seeds, and numbers as text."""

import math
from dataclasses import dataclass

import pandas as pd

from analysis.statistics.intervals import interval
from encore.recipe.metric_names import AT_KL, OF_PEAK, OF_TRAINING

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
LENGTHS = ("length", "length_correct", "length_incorrect")


@dataclass(frozen=True)
class Mean:
    """A mean over seeds. The interval is over seeds, or over items if all seeds share one model."""

    value: float
    low: float
    high: float
    n: int
    over: str  # "seeds" | "items" | "": what the interval is over

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval; both are the mean itself if there is no interval."""
        return (self.value, self.value) if math.isnan(self.low) else (self.low, self.high)

    def columns(self, name: str = "value", prefix: str = "") -> dict[str, float]:
        """Return the columns of a table: the mean under its name, and the ends of its interval."""
        return {name: self.value, f"{prefix}low": self.low, f"{prefix}high": self.high}


def average(rows: pd.DataFrame) -> Mean:
    """Return the mean over `rows`, a table of measured(); a model that several seeds share counts once."""
    columns = zip(rows.source, rows.value, rows.low, rows.high, strict=True)
    models = {source: number for source, *number in columns if not math.isnan(number[0])}
    values = [value for value, _, _ in models.values()]
    if not values:
        return Mean(math.nan, math.nan, math.nan, 0, "")
    if len(values) > 1:
        return Mean(sum(values) / len(values), *interval(values), len(values), "seeds")
    _, low, high = next(iter(models.values()))
    return Mean(values[0], low, high, 1, "" if math.isnan(low) else "items")


def number(value: float, metric: str = "accuracy") -> str:
    """Return a value of `metric` as text; nan is a dash.

    Lengths and counts have one decimal, metrics of training three significant digits, all others three
    decimals.
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else f"{MINUS}\N{INFINITY}"
    parts = metric.split("/")
    counted = parts[-1] in LENGTHS or parts[1:2] == ["length"] or parts[0].endswith("_to")
    trained = parts[0] in (*OF_TRAINING, *OF_PEAK) or AT_KL.fullmatch(metric)
    form = ".3g" if trained else ".1f" if counted else ".3f"
    return f"{value:{form}}".replace("-", MINUS)


def shown(mean: Mean, metric: str = "accuracy") -> str:
    """Return a mean of `metric` with its interval as text, such as `0.801 [0.774, 0.826]`."""
    return with_interval(mean.value, mean.low, mean.high, metric)


def with_interval(value: float, low: float, high: float, metric: str = "accuracy") -> str:
    """Return a text such as `0.801 [0.774, 0.826]`; only the number if there is no interval."""
    if math.isnan(low):
        return number(value, metric)
    return f"{number(value, metric)} [{number(low, metric)}, {number(high, metric)}]"


def percent(mean: Mean) -> str:
    """Return a mean that is a fraction as `80.1 % [77.4, 82.6]`."""
    value, low, high = (f"{100 * x:.1f}".replace("-", MINUS) for x in (mean.value, mean.low, mean.high))
    return f"{value} %" if math.isnan(mean.low) else f"{value} % [{low}, {high}]"


def p_value(p: float) -> str:
    """Return `p = 0.028` or `p < 0.001`; "" for nan."""
    if math.isnan(p):
        return ""
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def duration(seconds: float) -> str:
    """Return seconds as `2 h 05 min`, `3 min 12 s` or `9 s`."""
    rounded = round(seconds)
    if rounded >= 3600:
        return f"{rounded // 3600} h {rounded % 3600 // 60:02d} min"
    return f"{rounded // 60} min {rounded % 60:02d} s" if rounded >= 60 else f"{rounded} s"


def power(n: float) -> str:
    """Return a large number as `3.8e13`."""
    return f"{n:.1e}".replace("e+", "e")
