"""Probability of improvement and performance profiles, against brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics.improvement import performance_profile, probability_of_improvement

TASK = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=5)
ARMS = st.integers(1, 4).flatmap(lambda n: st.tuples(*[st.lists(TASK, min_size=n, max_size=n)] * 2))


@given(ARMS)
def test_it_is_the_share_of_pairs_of_runs_that_the_arm_wins(arms):
    arm, other = arms
    shares = [
        np.mean([(a > b) + 0.5 * (a == b) for a, b in product(x, y)]) for x, y in zip(arm, other, strict=True)
    ]
    found = probability_of_improvement(arm, other)
    assert found.value == pytest.approx(np.mean(shares))
    assert 0 <= found.low <= found.high <= 1 + 1e-12
    assert probability_of_improvement(other, arm).value == pytest.approx(1 - found.value)


def test_its_interval_is_that_of_every_resample():
    """Of two tasks of three seeds each, whose resamples can be listed."""
    arm, other = [[1.0, 2.0, 4.0], [0.0, 3.0, 3.0]], [[0.0, 2.0, 3.0], [1.0, 2.0, 3.5]]
    shares = []
    for x, y in zip(arm, other, strict=True):
        drawn = [*product(product(x, repeat=3), product(y, repeat=3))]
        shares.append([np.mean([(a > b) + 0.5 * (a == b) for a, b in product(*pair)]) for pair in drawn])
    every = np.add.outer(shares[0], shares[1]).ravel() / 2
    found = probability_of_improvement(arm, other)
    assert (found.low, found.high) == pytest.approx(np.quantile(every, [0.025, 0.975]), abs=0.03)


@pytest.mark.parametrize("arms", [([], []), ([[1.0]], []), ([[1.0], []], [[1.0], [2.0]])])
def test_arms_of_other_tasks_are_refused(arms):
    with pytest.raises(ValueError, match="expected the same tasks"):
        probability_of_improvement(*arms)


@given(st.lists(TASK, min_size=1, max_size=4))
def test_a_profile_is_the_share_of_runs_above_each_level(arm):
    levels = [-1.0, 0.0, 2.0, 4.0]
    profile = performance_profile(arm, levels)
    for level, share in zip(levels, profile, strict=True):
        assert share.value == pytest.approx(np.mean([np.mean(np.array(task) > level) for task in arm]))
        assert -1e-12 <= share.low <= share.high <= 1 + 1e-12
    assert (profile[0].value, profile[-1].value) == (pytest.approx(1), 0)
