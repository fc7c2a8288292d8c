"""The slope of an effect over size, against independent least squares and by its coverage."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from analysis.sizes.slopes import GROWS, MOVES, OPEN, SHRINKS, STAYS, Slope, slope, word
from encore.recipe.claims import Test

SIZES = (130_000, 1_100_000, 8_400_000)


def test_with_as_many_seeds_at_each_size_the_line_is_that_of_all_points():
    rng = np.random.default_rng(0)
    effects = {size: list(rng.normal(size=5)) for size in SIZES}
    points = [(np.log10(size), value) for size, values in effects.items() for value in values]
    assert slope(effects).estimate == pytest.approx(stats.linregress(*zip(*points, strict=True)).slope)


def test_of_two_sizes_a_decade_apart_it_is_the_interval_of_welch():
    few, many = [0.1, 0.4, 0.3, 0.35], [0.9, 0.7, 0.75, 0.8, 0.85]
    trend = slope({100_000: few, 1_000_000: many})
    theirs = stats.ttest_ind(many, few, equal_var=False).confidence_interval()
    assert (trend.low, trend.high) == pytest.approx((theirs.low, theirs.high))


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=6), min_size=2, max_size=4),
    st.floats(-3, 3),
)
@example([[0.0, 0.0], [0.0, 3.5e-156]], 0.0)  # the square of its variance is 0
def test_a_trend_that_is_added_is_added_to_the_slope(values, added):
    sizes = [10 ** (5 + at) for at in range(len(values))]
    plain = slope(dict(zip(sizes, values, strict=True)))
    tilted = slope({s: [v + added * np.log10(s) for v in vs] for s, vs in zip(sizes, values, strict=True)})
    moved = (plain.estimate + added, plain.low + added, plain.high + added)
    assert (tilted.estimate, tilted.low, tilted.high) == pytest.approx(moved, abs=1e-6)


def test_the_interval_covers_the_truth_as_often_as_it_says_though_sizes_differ_in_spread():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        effects = {
            size: 0.2 * np.log10(size) + spread * rng.normal(size=n)
            for size, spread, n in zip(SIZES, (0.05, 0.2, 0.1), (8, 4, 4), strict=True)
        }
        trend = slope(effects)
        covered += trend.low <= 0.2 <= trend.high
    assert covered / 2000 == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("effects", [{100_000: [0.1, 0.2]}, {100_000: [0.1, 0.2], 1_000_000: [0.3]}])
def test_too_little_for_a_slope_is_refused(effects):
    with pytest.raises(ValueError, match="two sizes"):
        slope(effects)


@pytest.mark.parametrize(
    ("ends", "direction", "means"),
    [
        ((0.1, 0.3), "higher", GROWS),
        ((0.1, 0.3), "lower", SHRINKS),
        ((-0.3, -0.1), "lower", GROWS),
        ((-0.3, -0.1), "higher", SHRINKS),
        ((-0.1, 0.3), "higher", OPEN),
        ((-0.015, 0.01), "higher", STAYS),
        ((0.001, 0.01), "higher", STAYS),
        ((0.1, 0.3), "equal", MOVES),
        ((-0.01, 0.04), "equal", STAYS),
        ((-0.01, 0.06), "equal", OPEN),
    ],
)
def test_what_a_slope_means_depends_on_what_is_claimed(ends, direction, means):
    least = {"margin": 0.05} if direction == "equal" else {"margin": 0.0, "smallest_effect": 0.02}
    test = Test(metric="heldout/accuracy", of="a/after", against="b/after", direction=direction, **least)
    assert word(Slope(sum(ends) / 2, *ends), test) == means
