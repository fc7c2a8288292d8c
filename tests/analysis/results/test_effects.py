"""The interquartile mean over seeds and tasks."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from analysis.statistics.intervals import interval, iqm

number = st.floats(0, 1).map(lambda x: round(x, 3))
shape = st.tuples(st.integers(2, 4), st.integers(1, 6))
grid = shape.flatmap(lambda size: arrays(float, size, elements=number))


def test_it_is_the_mean_of_the_middle_half():
    values = np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 700.0]])
    assert iqm(values)[0] == pytest.approx((2 + 3 + 4 + 5) / 4)


def test_every_resample_of_seeds_is_counted():
    values = np.random.default_rng(0).uniform(size=(4, 3))
    draws = [stats.trim_mean(values[list(d)], 0.25, axis=None) for d in itertools.product(range(4), repeat=4)]
    tail = stats.norm.cdf(-np.sqrt(4 / 3) * stats.t.ppf(0.975, 3))
    skip = int(np.ceil(tail * len(draws))) - 1
    assert iqm(values)[1:] == pytest.approx((sorted(draws)[skip], sorted(draws)[::-1][skip]))


@given(grid, st.randoms())
@settings(max_examples=40)
def test_the_order_of_tasks_and_of_seeds_is_of_no_account(values, rng):
    tasks = rng.sample(range(values.shape[1]), values.shape[1])
    seeds = rng.sample(range(len(values)), len(values))
    assert iqm(values[:, tasks]) == pytest.approx(iqm(values))
    assert iqm(values[seeds]) == pytest.approx(iqm(values))


@given(grid)
@settings(max_examples=40)
def test_it_lies_within_the_numbers_and_moves_with_them(values):
    point, low, high = iqm(values)
    assert values.min() - 1e-9 <= low <= high <= values.max() + 1e-9
    assert iqm(values + 1) == pytest.approx((point + 1, low + 1, high + 1))
    assert iqm(-values) == pytest.approx((-point, -high, -low))


def test_one_task_of_few_seeds_is_the_mean_and_its_interval():
    x = [0.2, 0.5, 0.4]  # a quarter of three is nothing to cut off
    assert iqm(np.array(x)[:, None]) == pytest.approx((np.mean(x), *interval(x)))


def test_the_interval_holds_what_all_tasks_of_a_seed_share():
    """Lucky seeds are lucky in every task: resampled task by task, that luck would average out."""
    rng = np.random.default_rng(0)
    inside = stratified = 0
    for _ in range(200):
        values = 0.5 + rng.normal(0, 0.1, size=(5, 1)) + rng.normal(0, 0.03, size=(5, 6))
        _, low, high = iqm(values)
        inside += low <= 0.5 <= high
        draws = rng.integers(5, size=(300, 5, 6))
        found = stats.trim_mean(values[draws, np.arange(6)].reshape(300, -1), 0.25, axis=1)
        stratified += np.quantile(found, 0.025) <= 0.5 <= np.quantile(found, 0.975)
    assert inside / 200 >= 0.87
    assert stratified / 200 <= 0.75


def test_many_seeds_are_drawn_alike_every_time():
    values = np.random.default_rng(2).normal(size=(12, 4))
    assert iqm(values) == iqm(values)


@pytest.mark.parametrize("values", [[[0.1, 0.2]], [0.1, 0.2], [[0.1], [np.nan]], np.zeros((3, 0))])
def test_what_is_no_grid_is_refused(values):
    with pytest.raises(ValueError, match="seeds, tasks"):
        iqm(values)
