"""Whether a run of training collapsed, read off its learning curve.

`collapsed/accuracy` is 1 where the mean `accuracy` of the last 5 logged rollouts is less than half of the
best such mean of the run, and 0 where it is not: its mean over seeds is the rate of collapse. A run that has
learned nothing has not collapsed; one that learned, and lost half of it or more, has.

verdicts.collapse asks another thing: whether held-out accuracy surely ends far below where it began, so that
a mean over seeds is no longer of one kind of run.
"""

from collections.abc import Iterable

import pandas as pd

from analysis.numbers.reach import WINDOW, series
from encore.recipe.metric_names import FALL


def collapsed(curve: pd.DataFrame, metrics: Iterable[str]) -> dict[str, float]:
    """`collapsed/<metric>` of one stage, 0 or 1, from its curve (columns step, metric, value).

    A metric with fewer than 5 logged rollouts has none.
    """
    means = {metric: series(curve, metric).rolling(WINDOW).mean().dropna() for metric in metrics}
    return {
        f"{FALL}/{metric}": float(values.iloc[-1] < values.max() / 2)
        for metric, values in means.items()
        if len(values)
    }
