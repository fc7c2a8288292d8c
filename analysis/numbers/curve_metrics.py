"""Metrics that are read off a stage's learning curve.

`updates_to/accuracy=0.5` is the first logged step at which the mean `accuracy` of the last 5 logged rollouts
is 0.5 or more, in optimizer steps. `samples_to/accuracy=0.5` is the curve `samples` at that step: completions
generated so far, including the completions that dynamic sampling threw away. `flops_to/accuracy=0.5` and
`seconds_to/accuracy=0.5` are what training had cost by then: see spent(). All are nan if the run never
reached the level. `updates_to/budget` and its like are the totals of the whole run.

`auc/length/incorrect` is the mean of the curve `length/incorrect` over the whole of training: the area under
the curve by the trapezoid rule, divided by the range of its steps. It describes the whole of a run, where
`last_fifth/…` describes its end. It varies less from seed to seed, and does not depend on how densely the
curve was logged. A step without a value (no response was wrong, so none has a length) is left out; before the
first value and after the last one nothing is assumed.

`first_fifth/entropy` is the mean of the curve `entropy` over the first fifth of the steps. Stages report a
few metrics of this kind themselves.

`collapsed/accuracy` is 1 if the mean `accuracy` of the last 5 logged rollouts is less than half of the
largest mean of 5 rollouts in the run, otherwise 0. Its mean over seeds is the rate of collapse. A run that
has learned nothing has not collapsed. verdicts.collapse has another definition: held-out accuracy surely ends
far below where it began.

`entropy_law/predicted` is what the law of entropy predicts for the end of training, and `entropy_law/reached`
what was reached: see law(). `sigmoid/predicted`, `sigmoid/reached`, `sigmoid/asymptote` and
`sigmoid/midpoint` are of the sigmoid of accuracy over operations: see scaling().

For x = gold (curve `rewards/gold/mean`) and x = proxy (curve `rewards/reward_model/mean`), all from means
over 5 successive logged rollouts, because one rollout is too noisy to be a peak:

- `peak/x` is the largest mean; `rise/x` is the peak minus the first mean, `drop/x` the peak minus the last
  one. Both are 0 or more, and noise alone lifts them above 0: a claim's margin must leave room for that.
- `kl_at_peak/x` is the curve `kl` at the peak, for a `ppo` stage: nats a sequence, to the reference policy.
- `x_at_kl/2.5` is x where `kl` first passes 2.5 nats, interpolated between two rollouts, or nan.

A record that has no curves has only the metrics of curves that were stored with its numbers.
"""

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from analysis.statistics import sigmoid
from encore.recipe.metric_names import (
    AREA,
    AT_KL,
    COLLAPSED,
    FALL,
    LAW,
    OF_AREA,
    OF_START,
    REACHED,
    SIGMOID,
    TRAINED_TOKENS,
)
from encore.runtime.curves import Row, first_fifths

WINDOW = 5  # number of logged rollouts; a single one is too noisy to count
COUNTED = ("samples", "flops", "seconds")  # curves of what a run has spent so far, beside its updates
CURVES = {"gold": "rewards/gold/mean", "proxy": "rewards/reward_model/mean"}
KL = "kl"
EARLY = 0.15  # share of a run's steps from which the law of entropy is fitted, as in its paper
LEAST = 4  # smallest number of logged rollouts to fit it


def of_curve(curve: pd.DataFrame, named: Sequence[str], of_sequences: bool) -> dict[str, float]:
    """Return metric -> value for one stage, from its curve (columns step, metric, value).

    `named` has the metrics that claims, gates and published numbers name; they say which levels and curves
    are needed. of_sequences: whether the curve `kl` is in nats per sequence; otherwise it is not used.
    """
    of_start = named_in(named, OF_START)
    return {
        **reached(curve, named_in(named, REACHED)),
        **areas(curve, named_in(named, OF_AREA)),
        **(first_fifths(_rows(curve), of_start) if of_start else {}),
        **collapsed(curve, named_in(named, COLLAPSED)),
        **(law(curve) if {*LAW} & {*named} else {}),
        **(scaling(curve) if {*SIGMOID} & {*named} else {}),
        **peaks(curve, of_sequences, named_in(named, AT_KL)),
    }


def named_in(metrics: Iterable[str], form: re.Pattern[str]) -> list[str]:
    """Return the texts that the last group of the pattern `form` matches in the metrics, sorted.

    For `updates_to/accuracy=0.5` it is ["0.5"]. A level stays text, because metrics are named after it.
    """
    return sorted({match.groups()[-1] for name in metrics if (match := form.fullmatch(name))})


def budget_of(metric: str) -> str | None:
    """Return `updates_to/budget` for `updates_to/accuracy=0.5`; None for a metric of another kind."""
    match = REACHED.fullmatch(metric)
    return f"{match[1]}_to/budget" if match else None


def reached(curve: pd.DataFrame, levels: Iterable[str]) -> dict[str, float]:
    """Return the metrics `updates_to/…`, `samples_to/…` etc. for each level of accuracy, and the budgets.

    The metrics of samples, FLOPs or seconds are left out if the curve does not count them.
    """
    levels, accuracy = list(levels), _series(curve, "accuracy")
    if accuracy.empty or not levels:
        return {}
    counts = {"updates": pd.Series(accuracy.index, accuracy.index, dtype=float)}
    for unit in COUNTED:
        if not (count := _series(curve, unit)).empty:
            counts[unit] = count.reindex(accuracy.index, method="ffill")
    recent = accuracy.rolling(WINDOW).mean()
    metrics = {f"{unit}_to/budget": float(count.iloc[-1]) for unit, count in counts.items()}
    for level in levels:
        passed = recent.index[
            recent >= float(level) - 1e-12
        ]  # a mean of floats may miss the level by a rounding error
        for unit, count in counts.items():
            metrics[f"{unit}_to/accuracy={level}"] = float(count[passed[0]]) if len(passed) else math.nan
    return metrics


def spent(
    curve: pd.DataFrame, timing: pd.DataFrame, flops: float, training_flops: float = 0.0
) -> pd.DataFrame:
    """Return the curves `flops` and `seconds` of a stage: what training has cost up to each logged step.

    FLOPs grow with the curve `num_tokens`, up to `flops`, the total of the stage. With dynamic sampling the
    part `training_flops` of this total grows with the tokens that were trained on. Seconds are the sum of
    `step_time` in `timing`, the mean seconds of a step since the last logged one, without loading and saving.
    """
    tokens, trained = _series(curve, "num_tokens"), _series(curve, TRAINED_TOKENS)
    times = _series(timing, "step_time")
    costs = {}
    if len(tokens) and tokens.iloc[-1] > 0 and flops > 0:
        costs["flops"] = tokens / tokens.iloc[-1] * (flops - training_flops)
        if training_flops:
            costs["flops"] += trained / trained.iloc[-1] * training_flops
    if len(times):
        steps = np.diff(times.index.to_numpy(dtype=float), prepend=0.0)
        costs["seconds"] = (times * steps).cumsum()
    frames = [
        pd.DataFrame({"step": cost.index, "metric": name, "value": cost}) for name, cost in costs.items()
    ]
    return pd.concat(frames, ignore_index=True) if frames else curve.iloc[:0]


def areas(curve: pd.DataFrame, metrics: Iterable[str]) -> dict[str, float]:
    """Return `auc/<metric>` for each metric that was logged, in the unit of the metric."""
    logged = {metric: _series(curve, metric).dropna() for metric in metrics}
    return {f"{AREA}/{metric}": _mean(values) for metric, values in logged.items() if len(values)}


def _mean(values: pd.Series) -> float:
    """Return the mean over steps of a curve that joins the values by straight lines."""
    x, y = values.index.to_numpy(dtype=float), values.to_numpy(dtype=float)
    return float(np.trapezoid(y, x) / (x[-1] - x[0])) if len(x) > 1 else float(y[0])


def collapsed(curve: pd.DataFrame, metrics: Iterable[str]) -> dict[str, float]:
    """Return `collapsed/<metric>`, 0 or 1, for each metric with 5 logged rollouts or more."""
    means = {metric: _trailing(curve, metric) for metric in metrics}
    return {
        f"{FALL}/{metric}": float(values.iloc[-1] < values.max() / 2)
        for metric, values in means.items()
        if len(values)
    }


def law(curve: pd.DataFrame) -> dict[str, float]:
    """Return the metrics LAW of a curve with `accuracy` R and `entropy` H; {} without one of them.

    The law is R = -a exp(H) + b (Cui et al. 2025, arXiv 2505.22617). a and b are the least squares of the
    rollouts within the first EARLY of the steps; they predict R from the mean H of the last 5 rollouts. What
    is reached is the mean R of the same rollouts. The prediction is nan if there are fewer than LEAST
    rollouts to fit, or if their entropy is constant.
    """
    values = pd.DataFrame({name: _series(curve, name) for name in ("accuracy", "entropy")}).dropna()
    if values.empty:
        return {}
    early, end = values[values.index <= EARLY * values.index[-1]], values.tail(WINDOW).mean()
    predicted = math.nan
    if len(early) >= LEAST and early.entropy.nunique() > 1:
        slope, level = np.polyfit(np.exp(early.entropy), early.accuracy, 1)  # slope is -a
        predicted = float(slope * math.exp(end.entropy) + level)
    return dict(zip(LAW, (predicted, float(end.accuracy)), strict=True))


def scaling(curve: pd.DataFrame) -> dict[str, float]:
    """Return the metrics SIGMOID of a curve with `accuracy` and `flops`; {} without one of them.

    The sigmoid is ScaleRL's (analysis/statistics/sigmoid.py). Fitted to the first half of the
    operations, it predicts the mean accuracy of the last 5 rollouts; fitted to all of them, it has an
    asymptote and a midpoint, here the log2 of its operations. All but what was reached are nan if there are
    too few rollouts to fit.
    """
    values = pd.DataFrame({name: _series(curve, name) for name in ("accuracy", "flops")}).dropna()
    if values.empty:
        return {}
    compute, accuracy = values.flops.to_numpy(dtype=float), values.accuracy.to_numpy(dtype=float)
    half = sigmoid.of_first_half(compute, accuracy)
    whole = sigmoid.fit(compute, accuracy, float(accuracy[0]))
    numbers = (
        math.nan if half is None else float(half.at(compute[-WINDOW:]).mean()),
        float(accuracy[-WINDOW:].mean()),
        math.nan if whole is None else whole.asymptote,
        math.nan if whole is None else math.log2(whole.midpoint),
    )
    return dict(zip(SIGMOID, numbers, strict=True))


def peaks(curve: pd.DataFrame, of_sequences: bool, levels: Iterable[str] = ()) -> dict[str, float]:
    """Return the metrics of the peaks of gold and proxy reward, and both rewards at these levels of KL."""
    metrics: dict[str, float] = {}
    kl = _trailing(curve, KL) if of_sequences else pd.Series(dtype=float)
    for name, logged in CURVES.items():
        means = _trailing(curve, logged)
        if means.empty:
            continue
        top = int(means.argmax())
        metrics[f"peak/{name}"] = float(means.iloc[top])
        metrics[f"rise/{name}"] = float(means.iloc[top] - means.iloc[0])
        metrics[f"drop/{name}"] = float(means.iloc[top] - means.iloc[-1])
        distances = kl.reindex(means.index)
        if distances.notna().any():
            metrics[f"kl_at_peak/{name}"] = float(distances.iloc[top])
            metrics |= {f"{name}_at_kl/{level}": _passing(distances, means, float(level)) for level in levels}
    return metrics


def _passing(distances: pd.Series, values: pd.Series, level: float) -> float:
    """Return the interpolated value at the step where `distances` first reaches `level` from below.

    It is nan if `distances` never does.
    """
    x, y = distances.to_numpy(), values.to_numpy()
    above = np.flatnonzero(x >= level)
    if not len(above) or not above[0]:  # the level was never passed, or was passed before the first value
        return float(y[0]) if len(above) and x[0] == level else math.nan
    i = int(above[0])
    return float(y[i - 1] + (y[i] - y[i - 1]) * (level - x[i - 1]) / (x[i] - x[i - 1]))


def _trailing(curve: pd.DataFrame, metric: str) -> pd.Series:
    """Return the means of the last WINDOW logged values by step, beginning at the WINDOW-th value."""
    return _series(curve, metric).rolling(WINDOW).mean().dropna()


def _rows(curve: pd.DataFrame) -> list[Row]:
    """Return the rows (step, metric, value) of a curve, the later one if a step was logged twice."""
    rows = curve.drop_duplicates(["step", "metric"], keep="last").dropna(subset=["value"])
    return list(rows[["step", "metric", "value"]].itertuples(index=False, name=None))


def _series(curve: pd.DataFrame, metric: str) -> pd.Series:
    """Return the values of a metric by step; if a step was logged twice, the later value."""
    rows = curve[curve.metric == metric].drop_duplicates("step", keep="last")
    return rows.set_index("step").value.sort_index()
