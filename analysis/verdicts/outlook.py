"""The planned look that would decide an open claim if further seeds were like the present ones.

An interval decides in one of several ways (see the table of verdicts.rule). Each way requires that the
interval lies above a bound, below a bound, or between two bounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.intervals import POWER, detectable
from analysis.verdicts.evidence import Evidence
from encore.recipe.claims import Test
from encore.recipe.looks import LOOKS

NEAR = f"so near its margin that {LOOKS[-1]} seeds are not likely to decide it"


@dataclass(frozen=True)
class Way:
    """A way to decide a claim: the interval lies above `above` and below `below`, if these are set."""

    above: float | None
    below: float | None

    @property
    def turned(self) -> "Way":
        """The same way for a claim in the other direction."""
        above, below = (None if bound is None else -bound for bound in (self.below, self.above))
        return Way(above, below)


def _ways(test: Test) -> list[Way]:
    """Return the ways in which an interval decides a claim."""
    m, s = test.margin, test.matters
    if test.direction == "equal":
        return [Way(-m, m), Way(m, None), Way(None, -m)]
    higher = [Way(m, None), Way(0.0, max(m, s)), Way(None, 0.0), Way(-s, s)]
    return higher if test.direction == "higher" else [way.turned for way in higher]


def deciding_look(evidence: Evidence, tails: Sequence[float], seeds: int) -> int | None:
    """Return the first look after `seeds`, as a number of seeds, that decides a claim with 80% power.

    The result is None if no look does. `tails` has, for each look, the probability that one side of the
    interval misses the truth. Differences to come are assumed to be like the present ones.
    """
    to_come = [(tail, look) for tail, look in zip(tails, LOOKS, strict=True) if look > seeds]
    possible = [
        way
        for way in _ways(evidence.claim.test)
        if not (evidence.unknown_below and way.above is not None)
        and not (evidence.unknown_above and way.below is not None)
    ]
    for tail, look in to_come:
        if any(_decides(evidence, way, tail, look) for way in possible):
            return look
    return None


def _decides(evidence: Evidence, way: Way, tail: float, n: int) -> bool:
    """Return whether the interval of n seeds will lie within the bounds of a way, with power POWER."""
    d = np.array(evidence.paired.differences)
    lower = way.above is None or _above_zero(d - way.above, evidence, tail, n)
    upper = way.below is None or _above_zero(way.below - d, evidence, tail, n)
    return lower and upper


def _above_zero(x: np.ndarray, evidence: Evidence, tail: float, n: int) -> bool:
    """Return whether n values distributed like x (seeds,) would show, with power POWER, a centre above zero.

    The centre is the median if the evidence is judged by it, otherwise the mean.
    """
    if evidence.by_median:
        least = stats.binom.isf(tail, n, 0.5) + 1  # number of the n values that must be above zero
        share = (np.sum(x > 0) + 0.5) / (len(x) + 1)
        return bool(stats.binom.sf(least - 1, n, share) >= POWER)
    least_effect = detectable(x.tolist(), tail, n=n, error=evidence.paired.error)
    return bool(x.mean() > 0 and least_effect <= x.mean())
