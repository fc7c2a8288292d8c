"""Exact tests and intervals of rates, held to their definitions."""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.proportions import boschloo, clopper_pearson

RATES = np.linspace(0.01, 0.99, 99)


def test_two_rates_of_collapse_are_compared_by_boschloos_exact_test():
    """By enumeration: the largest chance, over common rates, of a table with as small a p-value by Fisher."""
    k, n = 6, 8
    fisher = [
        [stats.fisher_exact([[i, j], [n - i, n - j]]).pvalue for j in range(n + 1)] for i in range(n + 1)
    ]
    as_rare = np.array(fisher) <= fisher[k][0] * (1 + 1e-9)
    chances = [np.outer(*[stats.binom.pmf(range(n + 1), n, rate)] * 2)[as_rare].sum() for rate in RATES]
    assert boschloo(k, n, 0, n) == pytest.approx(max(chances), rel=0.05)
    assert boschloo(0, n, 0, n) == boschloo(n, n, n, n) == 1.0


@pytest.mark.parametrize(("collapsed", "runs"), [(0, 8), (3, 8), (8, 8)])
def test_the_interval_ends_where_the_binomial_tails_are_its_level(collapsed, runs):
    low, high = clopper_pearson(collapsed, runs)
    at_least, at_most = stats.binom.sf(collapsed - 1, runs, low), stats.binom.cdf(collapsed, runs, high)
    assert at_least == pytest.approx(0.025) if collapsed else low == 0.0
    assert at_most == pytest.approx(0.025) if collapsed < runs else high == 1.0
