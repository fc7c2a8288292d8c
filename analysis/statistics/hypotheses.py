"""Tests of a claim against its margin, and corrections for the number of claims.

Every test is a paired t test: it takes one difference per seed, along the last axis, and supposes that they
are nearly normal. A test without that supposition could decide nothing early: with n seeds the smallest
p-value of a sign-flip test is 2^-n, 0.004 at eight seeds, and after any correction that is too large.
A run that all seeds share has an error of its own, which more seeds do not lessen: `error` is its standard
error, and the variance of the mean is s^2 / n + error^2. The degrees of freedom stay n - 1, so that an error
never brings a decision nearer.
The distributions are scipy's; its tests take no stack of samples as the simulation of the rule has, and call
equal differences not a number. statsmodels has TOST and Holm, but not with a spent alpha.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import stdtr

ALPHA = 0.05  # chance of one wrong verdict or more of a kind, among the primary claims of a recipe


def above(differences: ArrayLike, bound: float, error: float = 0.0) -> np.ndarray:
    """One-sided p-values (...) of "the mean is above the bound", from differences (..., seeds).

    H0 says that the mean is at most the bound. `error` is the standard error that all differences share.
    Where there is none and all differences are equal (up to rounding) the p-value is the test's limit: 0
    above the bound, else 1. ValueError below two differences.
    """
    x = np.asarray(differences, dtype=float)
    if x.shape[-1] < 2:
        raise ValueError(f"a test over seeds needs at least 2 differences, got {x.shape[-1]}")
    mean = x.mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (mean - bound) / np.hypot(x.std(axis=-1, ddof=1) / np.sqrt(x.shape[-1]), error)
    limit = np.where((mean > bound) & ~np.isclose(mean, bound, rtol=1e-9, atol=0.0), 0.0, 1.0)
    return np.where(constant(x) & (error == 0), limit, stdtr(x.shape[-1] - 1, -t))  # Student's cdf


def below(differences: ArrayLike, bound: float, error: float = 0.0) -> np.ndarray:
    """One-sided p-values of "the mean is below the bound"."""
    return above(-np.asarray(differences, dtype=float), -bound, error)


def constant(differences: ArrayLike) -> np.ndarray:
    """Whether all differences along the last axis are one number, up to the rounding of floats."""
    x = np.asarray(differences, dtype=float)
    return np.ptp(x, axis=-1) <= 1e-12 * np.abs(x).max(axis=-1)


def p_claim(differences: ArrayLike, direction: str, margin: float, error: float = 0.0) -> np.ndarray:
    """p-values of the claim: H0 says that it is false. Small: the claim is shown.

    `equal` is TOST (Schuirmann 1987): the larger p-value of the two one-sided tests, d > -margin and
    d < margin.
    """
    if direction == "higher":
        return above(differences, margin, error)
    if direction == "lower":
        return below(differences, -margin, error)
    return np.maximum(above(differences, -margin, error), below(differences, margin, error))


def p_opposite(differences: ArrayLike, direction: str, margin: float, error: float = 0.0) -> np.ndarray:
    """p-values of the claim's opposite: H0 says that the claim is true. Small: the claim is refuted.

    The opposite of `equal` has two sides: twice the smaller of their one-sided p-values.
    """
    if direction == "higher":
        return below(differences, margin, error)
    if direction == "lower":
        return above(differences, -margin, error)
    sides = above(differences, margin, error), below(differences, -margin, error)
    return np.minimum(1.0, 2 * np.minimum(*sides))


def holm(p: ArrayLike) -> np.ndarray:
    """Adjusted p-values (..., claims) of Holm 1979: any wrong rejection below ALPHA has chance ALPHA.

    In rising order the i-th of k (from 0) is multiplied by k - i, and is no less than the one before it.
    The tests may depend on each other, as claims that share a base model or an arm do.
    nan (no test) stays nan and is not counted in k.
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, axis=-1)  # nan last
    tested = (~np.isnan(values)).sum(axis=-1, keepdims=True)
    rising = np.take_along_axis(values, order, axis=-1) * (tested - np.arange(values.shape[-1]))
    adjusted = np.empty_like(values)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(rising, axis=-1), 1.0), axis=-1)
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """Adjusted p-values (..., claims): of those rejected below ALPHA a share ALPHA is expected to be wrong.

    For tests that are independent or depend positively on each other (Benjamini & Yekutieli 2001). nan (no
    test) stays nan and is not counted.
    """
    values = np.asarray(p, dtype=float)
    if not np.isnan(values).any():
        return stats.false_discovery_control(values, axis=-1) if values.size else values
    if values.ndim > 1:
        return np.apply_along_axis(benjamini_hochberg, -1, values)
    adjusted, tested = values.copy(), ~np.isnan(values)
    adjusted[tested] = benjamini_hochberg(values[tested])
    return adjusted
