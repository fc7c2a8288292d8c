"""The slope of an effect over the size of the model, and what it means for a claim."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.intervals import TAIL
from analysis.verdicts.rule import OPEN
from encore.recipe.claims import Test

GROWS, STAYS, SHRINKS, MOVES = "grows", "stays", "shrinks", "moves"  # beside OPEN


@dataclass(frozen=True)
class Slope:
    """The change of an effect with ten times as many parameters, and the ends of its 95% interval."""

    estimate: float
    low: float
    high: float


def slope(effects: Mapping[int, Sequence[float]]) -> Slope:
    """Return the slope of an effect over log10 of the number of parameters.

    `effects` maps a number of parameters to the effect in each seed. The slope is the least-squares line
    through the mean of each size. Its interval is Welch's: each size has a variance of its own, and the
    degrees of freedom are Satterthwaite's. Raises ValueError for fewer than two sizes, or for a size with
    fewer than two seeds.
    """
    if len(effects) < 2 or min(map(len, effects.values())) < 2:
        raise ValueError("a slope needs at least two sizes, and two seeds of each")
    x = np.log10(list(effects))
    x -= x.mean()
    weights = x / (x @ x)  # (sizes,); the slope is the weighted sum of the means
    estimate = float(weights @ [np.mean(values) for values in effects.values()])
    errors = weights**2 * [np.var(values, ddof=1) / len(values) for values in effects.values()]
    total = float(errors.sum())
    if total == 0:
        return Slope(estimate, estimate, estimate)
    shares = errors / total  # shares, because the square of a tiny variance would be 0
    freedom = 1 / sum(e**2 / (len(v) - 1) for e, v in zip(shares, effects.values(), strict=True))
    half = float(stats.t.isf(TAIL, freedom)) * math.sqrt(total)
    return Slope(estimate, estimate - half, estimate + half)


def word(trend: Slope, test: Test) -> str:
    """Return what the slope means for a claim's effect.

    STAYS if the whole interval is smaller than the least effect that matters. GROWS or SHRINKS if the whole
    interval is on one side of 0: GROWS if larger models show more of what is claimed. For a claim of equality
    it is MOVES on either side. Otherwise OPEN.
    """
    if max(abs(trend.low), abs(trend.high)) < test.matters:
        return STAYS
    if trend.low <= 0 <= trend.high:
        return OPEN
    if test.direction == "equal":
        return MOVES
    return GROWS if (trend.estimate > 0) == (test.direction == "higher") else SHRINKS
