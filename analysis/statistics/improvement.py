"""Comparisons of two arms on several tasks: probability of improvement, and performance profiles.

Both are by Agarwal et al. 2021 (arXiv 2108.13264, sections 4.2 and 4.3), with their stratified bootstrap:
seeds are drawn anew within each task and arm. With few seeds its intervals are too narrow, so they decide
nothing here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.statistics.intervals import LEVEL, TAIL, redraws

DRAWS = 2000
Arm = Sequence[Sequence[float]]  # for each task, a number for each seed


class Estimate(NamedTuple):
    """An estimate, with the ends of its 95% interval."""

    value: float
    low: float
    high: float


def probability_of_improvement(arm: Arm, other: Arm) -> Estimate:
    """Return the probability that a run of `arm` has a larger number than one of `other`, a mean over tasks.

    A tie counts half. Raises ValueError if the arms have different tasks, or a task without a number.
    """
    if not 0 < len(arm) == len(other) or not all(map(len, [*arm, *other])):
        raise ValueError("expected the same tasks of both arms, each with a number or more")
    rng = np.random.default_rng(0)
    value, drawn = 0.0, np.zeros(DRAWS)
    for x, y in zip(map(np.asarray, arm), map(np.asarray, other), strict=True):
        larger = (x[:, None] > y) + 0.5 * (x[:, None] == y)
        counts = (redraws(rng, len(side), DRAWS) for side in (x, y))
        value += float(larger.mean())
        drawn += np.einsum("di,ij,dj->d", next(counts), larger, next(counts)) / larger.size
    low, high = np.quantile(drawn / len(arm), [TAIL, LEVEL + TAIL])
    return Estimate(value / len(arm), float(low), float(high))


def performance_profile(arm: Arm, levels: Sequence[float]) -> list[Estimate]:
    """Return the share of runs above each level, a mean over tasks; all tasks must have the same scale."""
    rng = np.random.default_rng(0)
    values, drawn = np.zeros(len(levels)), np.zeros((DRAWS, len(levels)))
    for x in map(np.asarray, arm):
        above = x[:, None] > np.asarray(levels)
        values += above.mean(axis=0) / len(arm)
        drawn += redraws(rng, len(x), DRAWS) @ above / (len(x) * len(arm))
    low, high = np.quantile(drawn, [TAIL, LEVEL + TAIL], axis=0)
    return [Estimate(*ends) for ends in zip(values.tolist(), low.tolist(), high.tolist(), strict=True)]
