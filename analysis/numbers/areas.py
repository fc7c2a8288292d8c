"""A curve's mean over the whole of training: `auc/length/incorrect` of the curve `length/incorrect`.

It is the area under the curve, by the trapezoid rule over the steps at which it was logged, divided by the
span of these steps; a curve of one step has its value there. It says what a run was like on its way, where
`last_fifth/…` says how it ended, and varies less from seed to seed. Unlike `mean/…`, which jobs write of
importance ratios alone and which weighs every logged step alike, it does not depend on how densely a stretch
was logged.

A step at which the curve has no value (no response was wrong, so none has a length) is left out: the rule
goes straight from the step before to the step after. Before the first value and after the last nothing is
assumed, and the span is shorter. A record without its curves has no `auc/…` but those that were kept with it.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from analysis.numbers.reach import series
from encore.recipe.metric_names import AREA


def areas(curve: pd.DataFrame, metrics: Iterable[str]) -> dict[str, float]:
    """`auc/<metric>` of one stage, in the metric's own unit; curve: columns step, metric, value.

    A metric that the stage did not log has none.
    """
    logged = {metric: series(curve, metric).dropna() for metric in metrics}
    return {f"{AREA}/{metric}": _mean(values) for metric, values in logged.items() if len(values)}


def _mean(values: pd.Series) -> float:
    """The mean of values by step, as of the straight lines between them."""
    x, y = values.index.to_numpy(dtype=float), values.to_numpy(dtype=float)
    return float(np.trapezoid(y, x) / (x[-1] - x[0])) if len(x) > 1 else float(y[0])
