"""Planned looks: their levels against published ones and a simulation, and what a p-value spends."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics.sequential import levels, nominal, spent
from encore.recipe.looks import LOOKS


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


def test_the_alpha_that_would_have_decided_is_uniform_at_a_true_null(p_of_nulls):
    """The smallest over the looks is the sequential p-value of Liu & Anderson 2008, Biometrics 64:1105."""
    alphas = np.min([spent(p_of_nulls[:, look], look) for look in range(len(LOOKS))], axis=0)
    for x in (0.01, 0.05, 0.2, 0.5):
        assert np.mean(alphas <= x) == pytest.approx(x, abs=0.006)


@given(st.floats(1e-9, 0.4), st.sampled_from(range(len(LOOKS))))
def test_spent_and_nominal_are_inverse_and_agree_with_the_levels(alpha, look):
    assert spent(nominal(alpha, look), look) == pytest.approx(alpha)
    assert nominal(alpha, look) == pytest.approx(levels(alpha)[look], rel=0.01)


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from(range(len(LOOKS))))
def test_a_smaller_p_value_spends_less(p, q, look):
    assert spent(min(p, q), look) <= spent(max(p, q), look) <= 1


def test_without_a_test_nothing_is_spent():
    assert math.isnan(spent(math.nan, 0))
    assert spent(0.0, 0) == 0
    assert spent([1.0], 0) == pytest.approx([1.0])
