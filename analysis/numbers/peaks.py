"""Where gold reward turns while the proxy is optimised, read off a stage's curve.

For x = gold (curve `rewards/gold/mean`) and x = proxy (curve `rewards/reward_model/mean`), as trailing means
of 5 logged rollouts, because one rollout is too noisy to be a peak:

- `peak/x` is the largest; `rise/x` is the peak less the first, `drop/x` the peak less the last. Both are 0 or
  more, and noise alone lifts them above 0: a claim's margin must leave room for that.
- `kl_at_peak/x` is the curve `kl` at the peak, for a `ppo` stage: nats a sequence, to the reference policy.
- `x_at_kl/2.5` is x where `kl` first passes 2.5 nats, interpolated between two rollouts; nan where it never
  does. There is one for each level that a claim or a gate names.

A stage that logs neither curve, or fewer than 5 rollouts, has none of them.
"""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from analysis.numbers.reach import WINDOW, series

CURVES = {"gold": "rewards/gold/mean", "proxy": "rewards/reward_model/mean"}
KL = "kl"


def peaks(curve: pd.DataFrame, of_sequences: bool, at: Iterable[str] = ()) -> dict[str, float]:
    """Metric -> value of one stage, from its curve (columns step, metric, value).

    of_sequences: `kl` is in nats a sequence; else it is not used.
    """
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
            metrics |= {f"{name}_at_kl/{level}": _passing(distances, means, float(level)) for level in at}
    return metrics


def _trailing(curve: pd.DataFrame, metric: str) -> pd.Series:
    """Trailing means of WINDOW logged values by step; the first of them stands at the WINDOW-th."""
    return series(curve, metric).rolling(WINDOW).mean().dropna()


def _passing(distances: pd.Series, values: pd.Series, level: float) -> float:
    """`values` where `distances`, both by step, first reaches `level` from below; nan where it never does."""
    x, y = distances.to_numpy(), values.to_numpy()
    above = np.flatnonzero(x >= level)
    if not len(above) or not above[0]:  # it never passed, or had passed before the first
        return float(y[0]) if len(above) and x[0] == level else math.nan
    i = int(above[0])
    return float(y[i - 1] + (y[i] - y[i - 1]) * (level - x[i - 1]) / (x[i] - x[i - 1]))
