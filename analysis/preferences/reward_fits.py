"""The functional forms of Gao et al. for reward by distance from the initial policy: fits and tests.

With d = sqrt(KL(policy || initial policy)), KL in nats a sequence, and R the reward gained over the initial
policy (Gao, Schulman & Hilton 2022, arXiv 2210.10760, §1):

    bon  R(d) = d (alpha - beta d)      best-of-n   highest at d = alpha / (2 beta)
    rl   R(d) = d (alpha - beta log d)  RL          highest at d = exp(alpha / beta - 1)

Each is linear in its parameters, so least squares has one solution. The origin is left out: R is 0 there by
definition, and the second form's slope is infinite. Best-of-n has KL(n) = log n - (n - 1) / n exactly.

That a form follows the points that it was fitted to says little. So held_out() fits it to the lower half of
the range of d, and measures R^2 on the rest. The other form, a straight line and a cubic are controls; for
best-of-n the form is itself a polynomial, of two parameters.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from analysis.numbers.means import MINUS

# name of a form -> function from d (points,) to the columns (points, weights) of its linear regression
FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bon": lambda d: np.stack([d, -(d**2)], axis=1),
    "rl": lambda d: np.stack([d, -d * np.log(d)], axis=1),
    "linear": lambda d: d[:, None],
    "cubic": lambda d: np.stack([d, d**2, d**3], axis=1),
}
ALPHA, BETA = "\N{GREEK SMALL LETTER ALPHA}", "\N{GREEK SMALL LETTER BETA}"
WRITTEN = {
    "bon": f"d ({ALPHA} {MINUS} {BETA} d)",
    "rl": f"d ({ALPHA} {MINUS} {BETA} log d)",
    "linear": f"{ALPHA} d",
    "cubic": "polynomial of degree 3",
}


@dataclass(frozen=True)
class Fit:
    """A fitted form, with a weight for each column of FORMS; for `bon` and `rl` they are alpha and beta."""

    form: str
    weights: tuple[float, ...]

    def __call__(self, d: np.ndarray) -> np.ndarray:
        """Return the gain at d > 0 (points,)."""
        return FORMS[self.form](np.asarray(d, dtype=float)) @ np.array(self.weights)

    @property
    def alpha(self) -> float:
        return self.weights[0] if self.form != "cubic" else math.nan

    @property
    def beta(self) -> float:
        return self.weights[1] if self.form in ("bon", "rl") else math.nan

    @property
    def top(self) -> float:
        """The d at which the form is highest; nan if it has no maximum at a finite KL above 0."""
        if not self.beta > 1e-9 * abs(self.alpha):  # without beta the form is a straight line, up to rounding
            return math.nan
        ratio = self.alpha / self.beta
        with np.errstate(over="ignore"):
            at = float(ratio / 2 if self.form == "bon" else np.exp(ratio - 1))
        return at if at > 0 and at * at < math.inf else math.nan


def best_of_n_kl(n: float) -> float:
    """Return the KL divergence in nats of the best of n samples from a single sample.

    It is log n - (n - 1) / n (Stiennon et al. 2020, App. G.3).
    """
    return math.log(n) - (n - 1) / n


def fit(form: str, d: np.ndarray, gain: np.ndarray) -> Fit | None:
    """Return the least-squares fit over points with d > 0; None if they do not determine the weights."""
    d, gain = _usable(d, gain)
    columns = FORMS[form](d)
    if len(d) < columns.shape[1] or np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    weights, *_ = linalg.lstsq(columns, gain)
    return Fit(form, tuple(float(weight) for weight in weights))


def r_squared(fitted: Fit, d: np.ndarray, gain: np.ndarray) -> float:
    """Return R^2: 1 - squared error of the fit / squared error of the points' mean.

    A value below 0 means that the fit is worse than the mean. It is nan if the points do not vary.
    """
    d, gain = _usable(d, gain)
    about = float(((gain - gain.mean()) ** 2).sum()) if len(gain) else 0.0
    return 1 - float(((gain - fitted(d)) ** 2).sum()) / about if len(gain) > 1 and about else math.nan


def _halves(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two masks (points,): which d lie in the lower half of 0 to max(d), and which in the upper."""
    d = np.asarray(d, dtype=float)
    middle = d.max() / 2 if len(d) else 0.0
    return (d > 0) & (d <= middle), d > middle


def held_out(form: str, d: np.ndarray, gain: np.ndarray) -> float:
    """Return R^2 in the upper half of d, for the form fitted to the lower half.

    It is nan if either half has too few points.
    """
    d, gain = _usable(d, gain)
    near, far = _halves(d)
    fitted = fit(form, d[near], gain[near])
    return r_squared(fitted, d[far], gain[far]) if fitted else math.nan


def _usable(d: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d, gain = np.asarray(d, dtype=float), np.asarray(gain, dtype=float)
    use = (d > 0) & np.isfinite(d) & np.isfinite(gain)
    return d[use], gain[use]
