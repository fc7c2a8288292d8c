"""The sigmoid by which the accuracy of RL grows with compute, fitted to the first half of a run.

R(C) = R_0 + (A - R_0) / (1 + (C_mid / C)^B)   (Khatri et al. 2025, ScaleRL, arXiv 2510.13786, Eq. 1)

R_0 is the accuracy before training, A the asymptote, C_mid the compute at which half of the way is gone, and
B the efficiency: the larger it is, the steeper is the rise. What the law predicts for the end of the run can
be held against what was reached.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Array = NDArray[np.float64]
SEEN = 0.5  # share of a run's compute from which the law is fitted
LEAST = 6  # smallest number of points to fit
FARTHEST = 100.0  # most multiples of the compute so far at which half of the way may lie
STEEPEST = 10.0  # largest exponent


@dataclass(frozen=True)
class Sigmoid:
    """A fitted law."""

    start: float
    asymptote: float
    midpoint: float  # in the unit of compute
    exponent: float

    def at(self, compute: Array) -> Array:
        """Return the accuracy at each amount of compute, which is more than 0."""
        share = 1 / (1 + (self.midpoint / compute) ** self.exponent)
        return self.start + (self.asymptote - self.start) * share


def fit(compute: Array, accuracy: Array, start: float) -> Sigmoid | None:
    """Return the law of least squares through the points of a run; None with fewer than LEAST points.

    `compute` is more than 0 and grows. `start` is the accuracy before training.
    """
    if len(compute) < LEAST:
        return None
    last = float(compute[-1])

    def law(parameters: Array) -> Sigmoid:
        asymptote, log_midpoint, log_exponent = parameters
        return Sigmoid(
            start, float(asymptote), last * float(np.exp(log_midpoint)), float(np.exp(log_exponent))
        )

    def errors(parameters: Array) -> Array:
        return law(parameters).at(compute) - accuracy

    bounds = ([0.0, np.log(1e-4), np.log(0.1)], [1.0, np.log(FARTHEST), np.log(STEEPEST)])
    begun = [
        (level, np.log(place), np.log(steep))
        for level in (float(np.clip(accuracy[-1], 0.01, 0.99)), 0.99)
        for place in (0.1, 0.5, 2.0)
        for steep in (1.0, 3.0)
    ]
    fits = [optimize.least_squares(errors, begin, bounds=bounds) for begin in begun]
    return law(min(fits, key=lambda each: each.cost).x)


def of_first_half(compute: Array, accuracy: Array) -> Sigmoid | None:
    """Return the law fitted to the points within the first half of the compute; None if they are too few.

    The first point is the accuracy before training.
    """
    seen = compute <= SEEN * compute[-1] if len(compute) else np.zeros(0, dtype=bool)
    return fit(compute[seen], accuracy[seen], float(accuracy[0])) if len(compute) else None
