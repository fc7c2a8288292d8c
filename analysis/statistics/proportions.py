"""Exact statistics of rates, such as the rate of collapse, because few runs allow no approximation."""

from functools import cache

from scipy import stats

from analysis.statistics.intervals import LEVEL


@cache
def boschloo(collapsed: int, runs: int, others: int, theirs: int) -> float:
    """Return the two-sided p-value for "the rates of collapse of two arms differ", by Boschloo's exact test.

    In one arm `collapsed` of `runs` runs collapsed; in the other `others` of `theirs` runs did.
    """
    table = [[collapsed, others], [runs - collapsed, theirs - others]]
    return float(stats.boschloo_exact(table).pvalue) if 0 < collapsed + others < runs + theirs else 1.0


def clopper_pearson(collapsed: int, runs: int) -> tuple[float, float]:
    """Return the exact 95% interval of a rate of collapse (Clopper & Pearson 1934, Biometrika 26:404)."""
    exact = stats.binomtest(collapsed, runs).proportion_ci(LEVEL, method="exact")
    return float(exact.low), float(exact.high)
