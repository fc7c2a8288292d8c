"""Statistics for a handful of seeds: intervals of a mean, minimal detectable effect, seeds needed.

Every function takes one number per seed (for a comparison: the difference of two arms at that seed, so that
the pairing is already done) and knows nothing of recipes.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
from scipy import special, stats

LEVEL = 0.95  # of every interval
TAIL = (1 - LEVEL) / 2  # of each side of an interval, so the level of the one-sided test it amounts to
POWER = 0.8  # of the answers to "how many seeds would it take?"
ENOUGH = 5  # seeds below which nothing is called decided
EXACT = 8  # seeds up to which the bootstrap distribution is enumerated rather than sampled
MOST = 1000  # seeds beyond which a question counts as out of reach


def interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Bootstrap interval of the mean, one value per seed; ValueError below two values.

    The plain percentile interval is far too narrow for few seeds (about 83% coverage at n = 5), so its tails
    are moved out by the expanded-percentile rule of Hesterberg 2015 (The American Statistician 69:371, §5):
    tail = Phi(-sqrt(n / (n - 1)) * t(1 - (1 - level) / 2, n - 1)).  How often it then covers: covers(n).
    Up to n = 4 it is the range of the values, the most any bootstrap can say.
    Up to 8 values every resample is enumerated, with its weight; beyond, 9999 are drawn.
    """
    x = np.asarray(values, dtype=float)
    n = x.size
    if n < 2:
        raise ValueError(f"an interval over seeds needs at least 2 values, got {n}")
    centre = float(x.mean())
    if np.ptp(x) == 0:
        return float(x[0]), float(x[0])
    tail = float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1)))
    if n > EXACT:
        found = stats.bootstrap(
            (x - centre,),
            np.mean,
            confidence_level=1 - 2 * tail,
            method="percentile",
            n_resamples=9999,
            rng=np.random.default_rng(0),
        ).confidence_interval
        return centre + float(found.low), centre + float(found.high)
    counts, weights = _resamples(n)
    means = counts @ (x - centre) / n  # (resamples,)
    order = np.argsort(means, kind="stable")
    below, above = np.cumsum(weights[order]), np.cumsum(weights[order][::-1])
    low = means[order][np.searchsorted(below, tail)]
    high = means[order][::-1][np.searchsorted(above, tail)]
    return centre + float(low), centre + float(high)


def covers(n: int) -> float:
    """Share of cases in which the 95% interval of n values holds their law's mean.

    Up to n = 4 it is 1 - 2^(1 - n), exact for a symmetric law; from 5 to 8 a simulation on normal values,
    5,000 draws and more each; beyond, that gave 95%.
    """
    return {2: 0.5, 3: 0.75, 4: 0.875, 5: 0.92, 6: 0.93, 7: 0.94, 8: 0.94}.get(n, LEVEL)


@cache
def _resamples(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Every multiset of n draws from n values: counts (resamples, n) and probabilities (resamples,)."""
    draws = np.array(list(combinations_with_replacement(range(n), n)))
    counts = np.stack([(draws == value).sum(axis=1) for value in range(n)], axis=1)
    ways = [math.factorial(n) / math.prod(math.factorial(c) for c in row) for row in counts.tolist()]
    return counts, np.array(ways) / float(n) ** n


def detectable(differences: Sequence[float], tail: float = TAIL, power: float = POWER) -> float:
    """Smallest true effect that this many seeds with this spread would find, with the given power.

    Of a one-sided paired t test at level `tail`, exact by the noncentral t law; nan below two seeds.
    """
    x = np.asarray(differences, dtype=float)
    if x.size < 2:
        return math.nan
    return float(_reach(x.size, x.size, tail, power)[0] * x.std(ddof=1))


def seeds_needed(
    differences: Sequence[float], distance: float, tail: float = TAIL, power: float = POWER
) -> int | None:
    """Fewest seeds (at least 5) that would tell the mean from a boundary `distance` away, at the spread seen.

    None where it cannot be said: below two seeds, no distance at all, or more than 1000 seeds.
    """
    x = np.asarray(differences, dtype=float)
    if x.size < 2 or not distance > 0:
        return None
    fits = np.flatnonzero(_reach(ENOUGH, MOST, tail, power) * x.std(ddof=1) <= distance)
    return ENOUGH + int(fits[0]) if fits.size else None


@cache
def _reach(least: int, most: int, tail: float, power: float) -> np.ndarray:
    """Detectable effect with n = least .. most seeds, in standard deviations of the differences."""
    n = np.arange(least, most + 1)
    return special.nctdtrinc(n - 1.0, 1 - power, stats.t.isf(tail, n - 1)) / np.sqrt(n)
