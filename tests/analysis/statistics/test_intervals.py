"""Intervals of a mean, what seeds can see, and the interquartile mean."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from analysis.statistics.intervals import EXACT, covers, detectable, interval, iqm

values = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=6)


def brute_force(x: list[float], level: float = 0.95) -> tuple[float, float]:
    """The expanded percentile interval over all n^n ordered resamples."""
    n = len(x)
    means = sorted(sum(draw) / n for draw in itertools.product(x, repeat=n))
    tail = stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1))
    skip = math.ceil(tail * len(means)) - 1
    return means[max(skip, 0)], means[::-1][max(skip, 0)]


@pytest.mark.parametrize(
    "x", [[0.1, 0.4], [1, 2, 4], [3, 3, 5, 9], [0.61, 0.6, 0.58, 0.7, 0.55], [1, 2, 3, 5, 8, 13]]
)
def test_every_resample_is_counted(x):
    assert interval(x) == pytest.approx(brute_force(x))


@given(values)
def test_lies_within_the_values_and_around_the_mean(x):
    low, high = interval(x)
    assert min(x) - 1e-9 <= low <= np.mean(x) + 1e-9
    assert np.mean(x) - 1e-9 <= high <= max(x) + 1e-9


@given(values, st.floats(-50, 50))
def test_a_shift_shifts_it(x, shift):
    low, high = interval(x)
    assert interval([v + shift for v in x]) == pytest.approx((low + shift, high + shift), abs=1e-6)


@given(values, st.floats(0.1, 10))
def test_a_scale_scales_it(x, factor):
    low, high = interval(x)
    assert interval([v * factor for v in x]) == pytest.approx((low * factor, high * factor), abs=1e-6)


@given(values)
def test_swapping_the_arms_negates_it(x):
    low, high = interval(x)
    assert interval([-v for v in x]) == pytest.approx((-high, -low), abs=1e-6)


@given(values, st.randoms())
def test_the_order_of_seeds_is_of_no_account(x, rng):
    assert interval(rng.sample(x, len(x))) == pytest.approx(interval(x), abs=1e-6)


@given(st.floats(-5, 5), st.integers(2, 20))
def test_equal_differences_have_no_width(value, n):
    assert interval([value] * n) == (value, value)


def test_many_seeds_are_resampled_alike_every_time():
    x = np.random.default_rng(0).normal(size=EXACT + 4)
    low, high = interval(x)
    assert (low, high) == interval(x)
    t = stats.t.interval(0.95, len(x) - 1, x.mean(), stats.sem(x))
    assert (low, high) == pytest.approx(t, abs=0.15)
    assert interval(-x) == pytest.approx((-high, -low), abs=0.02)


def test_one_value_has_none():
    with pytest.raises(ValueError, match="at least 2"):
        interval([0.3])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 8])
def test_covers_the_mean_as_often_as_it_says(n):
    rng = np.random.default_rng(n)
    bounds = np.array([interval(row) for row in rng.normal(0.3, 1, size=(500, n))])
    share = np.mean((bounds[:, 0] <= 0.3) & (bounds[:, 1] >= 0.3))
    assert share == pytest.approx(covers(n), abs=0.04)


@pytest.mark.parametrize("tail", [0.025, 0.005])
def test_the_detectable_effect_is_found_four_times_in_five(tail):
    effect = detectable([-1.0, -0.5, 0.0, 0.5, 1.0], tail)
    draws = np.random.default_rng(0).normal(effect, math.sqrt(0.625), size=(4000, 5))
    shown = stats.ttest_1samp(draws, 0, axis=1, alternative="greater").pvalue < tail
    assert shown.mean() == pytest.approx(0.8, abs=0.02)
    assert detectable([-1.0, -0.5, 0.0, 0.5, 1.0], tail, n=20) < effect / 2


def test_one_difference_has_no_spread():
    assert math.isnan(detectable([0.5]))
    assert detectable([0.2, 0.2, 0.2]) == pytest.approx(0)


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
        resampled = stats.trim_mean(values[draws, np.arange(6)].reshape(300, -1), 0.25, axis=1)
        stratified += np.quantile(resampled, 0.025) <= 0.5 <= np.quantile(resampled, 0.975)
    assert inside / 200 >= 0.87
    assert stratified / 200 <= 0.75


def test_many_seeds_are_drawn_alike_every_time():
    values = np.random.default_rng(2).normal(size=(12, 4))
    assert iqm(values) == iqm(values)


@pytest.mark.parametrize("values", [[[0.1, 0.2]], [0.1, 0.2], [[0.1], [np.nan]], np.zeros((3, 0))])
def test_what_is_no_grid_is_refused(values):
    with pytest.raises(ValueError, match="seeds, tasks"):
        iqm(values)
