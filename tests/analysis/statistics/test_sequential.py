"""Planned looks: their levels against published ones and a simulation, and the p-value over looks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics.sequential import levels, sequential
from encore.recipe.looks import LOOKS

p_at_looks = st.lists(st.floats(1e-9, 1), min_size=3, max_size=3)


@pytest.fixture(scope="module")
def p_of_nulls():
    """One-sided p-values (draws, looks) of true nulls with normal means."""
    seeds = np.random.default_rng(0).standard_normal((100_000, LOOKS[-1]))
    sums = seeds.cumsum(axis=1)[:, [look - 1 for look in LOOKS]]
    return stats.norm.sf(sums / np.sqrt(LOOKS))


def test_levels_are_those_of_gamma_minus_two():
    """The spent alpha by its formula; the levels to four digits."""
    assert levels(0.05) == pytest.approx((0.0051, 0.0101, 0.0433), abs=6e-5)
    assert levels(0.05)[0] == pytest.approx(0.05 * math.expm1(0.5) / math.expm1(2))


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 3])
def test_a_look_passes_a_true_null_no_more_often_than_it_may(alpha, p_of_nulls):
    rejected = p_of_nulls < levels(alpha)
    assert rejected.any(axis=1).mean() == pytest.approx(alpha, abs=3 * math.sqrt(alpha / len(p_of_nulls)))
    early = rejected[:, 0].mean()
    assert early == pytest.approx(alpha * math.expm1(0.5) / math.expm1(2), abs=0.001)


def test_the_p_value_over_looks_is_uniform_at_a_true_null(p_of_nulls):
    over_looks = sequential(p_of_nulls)
    for x in (0.01, 0.05, 0.2, 0.5):
        assert np.mean(over_looks <= x) == pytest.approx(x, abs=0.006)


@given(p_at_looks, st.sampled_from([0.05, 0.05 / 2, 0.01]))
def test_it_is_below_alpha_where_a_look_is_below_its_level(p, alpha):
    clear = all(abs(value / level - 1) > 0.01 for value, level in zip(p, levels(alpha), strict=True))
    if clear:  # between the levels that it knows it interpolates
        passed = any(value < level for value, level in zip(p, levels(alpha), strict=True))
        assert (sequential(p) < alpha) == passed


@given(p_at_looks)
def test_a_further_look_never_takes_evidence_away(p):
    first, second = sequential([p[0], math.nan, math.nan]), sequential([*p[:2], math.nan])
    assert sequential(p) <= second <= first <= 1


def test_a_look_not_taken_counts_for_nothing():
    assert math.isnan(sequential([math.nan] * 3))
    assert sequential([0.0, math.nan, math.nan]) == 0
    assert sequential([[1.0, math.nan, math.nan]]) == pytest.approx([1.0])
