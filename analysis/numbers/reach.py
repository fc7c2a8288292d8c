"""How soon training accuracy reached a level, read from a learning curve.

`updates_to/accuracy=0.5` is the first logged step at which the mean `accuracy` of the last 5 logged rollouts
is 0.5 or more, in optimizer steps; `samples_to/accuracy=0.5` is the curve `samples` at that step: completions
generated so far, including those that dynamic sampling threw away. Both are nan where the level was never
reached. `updates_to/budget` and `samples_to/budget` say how far the run went.
"""

import math
from collections.abc import Iterable

import pandas as pd

from encore.recipe.metric_names import REACHED

WINDOW = 5  # logged rollouts: one alone is too noisy to have reached anything


def budget_of(metric: str) -> str | None:
    """`updates_to/budget` of `updates_to/accuracy=0.5`; None of a metric of another kind."""
    match = REACHED.fullmatch(metric)
    return f"{match[1]}_to/budget" if match else None


def reached(curve: pd.DataFrame, wanted: Iterable[str]) -> dict[str, float]:
    """Metric -> value of one stage, from its curve (columns step, metric, value).

    Empty without levels or `accuracy`; no `samples_to/` without `samples`.
    """
    wanted = list(wanted)
    accuracy = series(curve, "accuracy")
    if accuracy.empty or not wanted:
        return {}
    counts = {"updates": pd.Series(accuracy.index, accuracy.index, dtype=float)}
    samples = series(curve, "samples")
    if not samples.empty:
        counts["samples"] = samples.reindex(accuracy.index, method="ffill")
    recent = accuracy.rolling(WINDOW).mean()
    metrics = {f"{unit}_to/budget": float(count.iloc[-1]) for unit, count in counts.items()}
    for level in wanted:
        passed = recent.index[recent >= float(level) - 1e-12]  # a mean of floats may miss it by rounding
        for unit, count in counts.items():
            metrics[f"{unit}_to/accuracy={level}"] = float(count[passed[0]]) if len(passed) else math.nan
    return metrics


def series(curve: pd.DataFrame, metric: str) -> pd.Series:
    """The values of a metric by step; of a step that was logged twice, the later."""
    rows = curve[curve.metric == metric].drop_duplicates("step", keep="last")
    return rows.set_index("step").value.sort_index()
