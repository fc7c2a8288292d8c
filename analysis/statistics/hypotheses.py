"""Tests of a claim against its margin, and Holm's correction over the claims of a recipe.

Every test is a paired t test: it takes one difference per seed and supposes that they are nearly normal.
A test without that supposition could decide nothing: with n seeds the smallest p-value of a sign-flip test is
2^-n, 0.03 at five seeds, and after any correction that is above 0.05.
"""

from collections.abc import Sequence
from math import isclose, sqrt

import numpy as np
from scipy.special import stdtr

ALPHA = 0.05  # chance of one wrong verdict or more, among the claims of a recipe, in either direction


def above(differences: Sequence[float], bound: float) -> float:
    """One-sided p-value of "the mean is above the bound": H0 says that it is at most the bound.

    Where all differences are equal (up to rounding) it is the test's limit: 0 above the bound, else 1.
    ValueError below two differences.
    """
    x = np.asarray(differences, dtype=float)
    if x.size < 2:
        raise ValueError(f"a test over seeds needs at least 2 differences, got {x.size}")
    distance = float(x.mean()) - bound
    if constant(differences):
        return 0.0 if distance > 0 and not isclose(x.mean(), bound, rel_tol=1e-9) else 1.0
    return float(stdtr(x.size - 1, -distance / (x.std(ddof=1) / sqrt(x.size))))  # Student's cdf


def below(differences: Sequence[float], bound: float) -> float:
    """One-sided p-value of "the mean is below the bound"."""
    return above([-d for d in differences], -bound)


def constant(differences: Sequence[float]) -> bool:
    """Whether all differences are one number, up to the rounding of floats."""
    x = np.asarray(differences, dtype=float)
    return bool(np.ptp(x) <= 1e-12 * np.abs(x).max())


def p_claim(differences: Sequence[float], direction: str, margin: float) -> float:
    """p-value of the claim: H0 says that it is false. Small: the claim is shown.

    `equal` is TOST (Schuirmann 1987): the larger p-value of the two one-sided tests, d > -margin and
    d < margin.
    """
    if direction == "higher":
        return above(differences, margin)
    if direction == "lower":
        return below(differences, -margin)
    return max(above(differences, -margin), below(differences, margin))


def p_opposite(differences: Sequence[float], direction: str, margin: float) -> float:
    """p-value of the claim's opposite: H0 says that the claim is true. Small: the claim is refuted.

    The opposite of `equal` has two sides: twice the smaller of their one-sided p-values.
    """
    if direction == "higher":
        return below(differences, margin)
    if direction == "lower":
        return above(differences, -margin)
    return min(1.0, 2 * min(above(differences, margin), below(differences, -margin)))


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979): with those below ALPHA rejected, any wrong rejection has chance ALPHA.

    In rising order the i-th of k (from 0) is multiplied by k - i, and is no less than the one before it.
    The tests may depend on each other, as claims that share a base model or an arm do.
    nan (no test) stays nan and is not counted in k.
    """
    values = np.asarray(p, dtype=float)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted = np.full(values.size, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)
    return [float(value) for value in adjusted]
