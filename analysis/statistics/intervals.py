"""Statistics for a handful of seeds: intervals of a mean, smallest detectable effect, interquartile mean.

Most functions take one number for each seed. In a comparison of two arms this number is their difference at
the seed. iqm() takes one number for each seed and task.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

LEVEL = 0.95  # level of every interval
TAIL = (1 - LEVEL) / 2  # probability that one side of an interval misses; level of the one-sided test
POWER = 0.8  # power at which an effect counts as detectable
DRAWS = 9999  # draws of a bootstrap that does not enumerate all resamples
RANGE = 4  # largest number of seeds for which the interval is the range of the values
EXACT = 8  # largest number of seeds for which the bootstrap distribution is enumerated, not sampled


def interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Return the ends of the bootstrap interval of the mean, from one value for each seed.

    The plain percentile interval is far too narrow for few seeds (about 83% coverage at n = 5), so it is
    widened by the expanded-percentile rule of Hesterberg 2015 (The American Statistician 69:371, §5): tail =
    Phi(-sqrt(n / (n - 1)) * t(1 - (1 - level) / 2, n - 1)). Its coverage is covers(n). Up to n = 4 it is the
    range of the values, the widest that a bootstrap can give. For n up to 8 every resample is enumerated with
    its probability; for larger n, 9999 resamples are drawn. Raises ValueError for fewer than two values.
    """
    x = np.asarray(values, dtype=float)
    n = x.size
    if n < 2:
        raise ValueError(f"an interval over seeds needs at least 2 values, got {n}")
    centre = float(x.mean())
    if np.ptp(x) == 0:
        return float(x[0]), float(x[0])
    if n > EXACT:
        resampled = stats.bootstrap(
            (x - centre,),
            np.mean,
            confidence_level=1 - 2 * expanded_tail(n, level),
            method="percentile",
            n_resamples=DRAWS,
            rng=np.random.default_rng(0),
        ).confidence_interval
        return centre + float(resampled.low), centre + float(resampled.high)
    counts, weights = _resamples(n)
    low, high = _bounds(counts @ (x - centre) / n, weights, expanded_tail(n, level))
    return centre + low, centre + high


def redraws(rng: np.random.Generator, size: int, draws: int) -> np.ndarray:
    """Return the counts (draws, size) of each of `size` values in each of `draws` resamples."""
    return rng.multinomial(size, np.full(size, 1 / size), size=draws)


def widened(low: float, high: float, values: Sequence[float], error: float) -> tuple[float, float]:
    """Widen `low` and `high`, the interval() of `values`, by a standard error that all values share.

    The two errors are independent, so the squares of their widths add: the width of each side, and `error`
    times the 97.5% quantile of t with n - 1 degrees of freedom.
    """
    centre, half = float(np.mean(values)), error * stats.t.isf(TAIL, len(values) - 1)
    return centre - math.hypot(centre - low, half), centre + math.hypot(high - centre, half)


def expanded_tail(n: int, level: float = LEVEL) -> float:
    """Return the share of the bootstrap distribution that interval() cuts off on each side, for n values."""
    return float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1)))


def _bounds(resampled: np.ndarray, weights: np.ndarray, tail: float) -> tuple[float, float]:
    """Return the values that cut off the probability `tail` at each end of `resampled` (resamples,).

    `weights` (resamples,) are the probabilities of the resamples.
    """
    order = np.argsort(resampled, kind="stable")
    below, above = np.cumsum(weights[order]), np.cumsum(weights[order][::-1])
    low = resampled[order][np.searchsorted(below, tail)]
    high = resampled[order][::-1][np.searchsorted(above, tail)]
    return float(low), float(high)


def covers(n: int) -> float:
    """Return the coverage of the 95% interval of n values: how often it contains their distribution's mean.

    Up to n = 4 it is 1 - 2^(1 - n), which is exact for a symmetric distribution. From 5 to 8 it was simulated
    with normal values, with at least 5,000 draws each. For more values the simulation gave 95%.
    """
    return {2: 0.5, 3: 0.75, 4: 0.875, 5: 0.92, 6: 0.93, 7: 0.94, 8: 0.94}.get(n, LEVEL)


@cache
def _resamples(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all distinct resamples of n values: counts (resamples, n) and probabilities (resamples,)."""
    draws = np.array(list(combinations_with_replacement(range(n), n)))
    counts = np.stack([(draws == value).sum(axis=1) for value in range(n)], axis=1)
    ways = [math.factorial(n) / math.prod(math.factorial(c) for c in row) for row in counts.tolist()]
    return counts, np.array(ways) / float(n) ** n


def detectable(
    differences: Sequence[float],
    tail: float = TAIL,
    power: float = POWER,
    n: int | None = None,
    error: float = 0.0,
) -> float:
    """Return the smallest true effect that `n` seeds with the spread of `differences` detect with `power`.

    `n` is by default the number of differences. `error` is the standard error that all differences share,
    which more seeds do not reduce. The test is a one-sided paired t test at level `tail`, by the noncentral t
    distribution. The result is nan for fewer than two differences.
    """
    x = np.asarray(differences, dtype=float)
    if x.size < 2:
        return math.nan
    seeds = n or x.size
    return float(_reach(seeds, tail, power) * math.hypot(x.std(ddof=1), math.sqrt(seeds) * error))


@cache
def _reach(n: int, tail: float, power: float) -> float:
    """Return the detectable effect with n seeds, in standard deviations of the differences."""
    return float(special.nctdtrinc(n - 1.0, 1 - power, stats.t.isf(tail, n - 1)) / math.sqrt(n))


def iqm(values: ArrayLike, level: float = LEVEL) -> tuple[float, float, float]:
    """Return the interquartile mean of values (seeds, tasks) and its interval: (point, low, high).

    It is the mean of the middle half of all numbers (Agarwal et al. 2021, arXiv 2108.13264, §4.3): less noisy
    than the median, less moved by an outlier than the mean. Seeds are resampled, each with its numbers in all
    tasks. rliable resamples each task by itself, because there every task has its own training run. Here one
    model answers all tasks, so its luck affects all columns, and resampling by task would leave it out of the
    interval. Tasks are not resampled: the interval is for these tasks. It is widened as in interval().
    Raises ValueError unless there are at least 2 seeds, with numbers in all tasks.
    """
    x = np.asarray(values, dtype=float)
    if x.ndim != 2 or len(x) < 2 or not x.size or np.isnan(x).any():
        raise ValueError(f"expected numbers (seeds, tasks) of 2 seeds or more, got shape {x.shape}")
    point = float(stats.trim_mean(x, 0.25, axis=None))
    if np.ptp(x, axis=0).max() == 0:
        return point, point, point
    rows, weights = _rows(len(x))
    resampled = stats.trim_mean(x[rows].reshape(len(rows), -1), 0.25, axis=1)
    return point, *_bounds(resampled, weights, expanded_tail(len(x), level))


@cache
def _rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return resamples of n seeds as indices (resamples, n), with their probabilities (resamples,)."""
    if n > EXACT:
        return np.random.default_rng(0).integers(n, size=(DRAWS, n)), np.full(DRAWS, 1 / DRAWS)
    counts, weights = _resamples(n)
    return np.stack([np.repeat(np.arange(n), row) for row in counts]), weights
