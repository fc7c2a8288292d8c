"""Group-sequential looks: the level of each test of a claim that is tested at several numbers of seeds.

A test at 5% with 8, with 16 and again with 32 seeds is wrong in more than 5% of cases. So the 5% is spent
over the looks, little of it early (Hwang, Shih & DeCani 1990, Statistics in Medicine 9:1439, gamma = -2). At
a share a of the largest number of seeds, the part of alpha that may have been spent is

    alpha (1 - exp(2 a)) / (1 - exp(2)).

The nominal level of a look is the probability that one side of its interval misses the truth. Levels are
computed for normal means, by the recursion of Armitage, McPherson & Rowe 1969, and applied to t tests and
their intervals, as in Jennison & Turnbull 2000, chapter 11. tests/conformance/decision_rule.py shows the
resulting error rates at these numbers of seeds.
"""

from functools import cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy import optimize, stats

from encore.recipe.looks import LOOKS

GAMMA = -2.0
FARTHEST = 12.0  # standard deviations beyond which a normal density counts as 0
NODES = 120  # number of nodes of an integral over the sums with which no look has decided yet
# values of alpha between which spent() and nominal() interpolate; below the smallest, a look's level is
# proportional to alpha
ALPHAS = np.concatenate([np.logspace(-12, -1, 56), [0.15, 0.2, 0.3, 0.5, 0.7, 0.9]])


@cache
def levels(alpha: float) -> tuple[float, ...]:
    """Return the nominal level of each look; `alpha`: the probability of a false rejection at any look."""
    fractions = np.array(LOOKS) / LOOKS[-1]
    allowed = alpha * np.expm1(-GAMMA * fractions) / np.expm1(-GAMMA)
    steps = np.sqrt(np.diff(fractions, prepend=0.0))
    nodes, weights = leggauss(NODES)
    at, mass = np.zeros(1), np.ones(1)  # possible sums of differences of undecided runs, and their weights
    by_look = []
    for fraction, step, fresh in zip(fractions, steps, np.diff(allowed, prepend=0.0), strict=True):
        spread = np.sqrt(fraction)
        z = optimize.brentq(_too_rare, -FARTHEST, FARTHEST, (spread, step, at, mass, fresh), xtol=1e-10)
        by_look.append(float(stats.norm.sf(z)))
        low, high = -FARTHEST * spread, z * spread
        means = low + (nodes + 1) * (high - low) / 2
        density = stats.norm.pdf((means[:, None] - at) / step) @ mass / step
        at, mass = means, density * weights * (high - low) / 2
    return tuple(by_look)


def _too_rare(z: float, spread: float, step: float, at: np.ndarray, mass: np.ndarray, wanted: float) -> float:
    """Return log P(a run that is undecided before a look exceeds z there) minus log `wanted`.

    `at` has the possible sums of differences before the look, and `mass` their probabilities.
    """
    return float(np.log(mass @ stats.norm.sf((z * spread - at) / step)) - np.log(wanted))


def spent(p: ArrayLike, look: int) -> np.ndarray:
    """Return the alpha (...) for which `p` (...) is the nominal level of a look (an index of LOOKS).

    With this alpha, the look would just reject at the p-value `p`. nan stays nan.
    """
    known = np.log(_table()[look])
    with np.errstate(divide="ignore"):
        x = np.log(np.asarray(p, dtype=float))
    proportional = x - known[0] + np.log(ALPHAS[0])
    return np.exp(np.where(x < known[0], proportional, np.interp(x, known, np.log(ALPHAS), right=0.0)))


def nominal(alpha: ArrayLike, look: int) -> np.ndarray:
    """Return the nominal level (...) of a look (an index of LOOKS) for an alpha: the inverse of `spent`."""
    known = np.log(_table()[look])
    with np.errstate(divide="ignore"):
        x = np.log(np.asarray(alpha, dtype=float))
    proportional = x - np.log(ALPHAS[0]) + known[0]
    return np.exp(np.where(x < np.log(ALPHAS[0]), proportional, np.interp(x, np.log(ALPHAS), known)))


@cache
def _table() -> np.ndarray:
    """Return the nominal levels of each look at ALPHAS (looks, alphas)."""
    return np.array([levels(float(alpha)) for alpha in ALPHAS]).T
