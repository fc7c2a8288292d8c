"""A curve's mean over the whole of training."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.numbers.curve_metrics import areas, named_in, of_curve
from encore.recipe.metric_names import OF_AREA
from encore.runtime import curves

value = st.floats(-1e3, 1e3)
points = st.dictionaries(st.integers(1, 10_000), value, min_size=1, max_size=30)


def curve(points: dict[int, float], metric: str = "entropy") -> pd.DataFrame:
    return pd.DataFrame([(s, metric, v) for s, v in points.items()], columns=["step", "metric", "value"])


def area(points: dict[int, float]) -> float:
    return areas(curve(points), ["entropy"])["auc/entropy"]


@given(st.sets(st.integers(1, 10_000), min_size=1), value)
def test_of_a_constant_it_is_the_constant(steps, constant):
    assert area(dict.fromkeys(steps, constant)) == pytest.approx(constant, abs=1e-9)


@given(points, st.floats(0.01, 0.99))
def test_a_step_more_on_the_line_between_two_changes_nothing(points, share):
    steps = sorted(points)
    assert area({4 * step: y for step, y in points.items()}) == pytest.approx(area(points), abs=1e-9)
    if len(steps) > 1 and steps[1] - steps[0] > 1:
        first, last = steps[:2]
        middle = first + max(1, int(share * (last - first)))
        on_line = points[first] + (points[last] - points[first]) * (middle - first) / (last - first)
        assert area(points | {middle: on_line}) == pytest.approx(area(points), abs=1e-9)


@given(points, points, st.floats(-5, 5))
def test_it_is_linear_in_the_curve_and_within_its_range(points, other, factor):
    both = {step: factor * y + other.get(step, 1.0) for step, y in points.items()}
    of_other = area({step: other.get(step, 1.0) for step in points})
    assert area(both) == pytest.approx(factor * area(points) + of_other, abs=1e-6)
    assert min(points.values()) - 1e-9 <= area(points) <= max(points.values()) + 1e-9


def test_the_steps_count_by_their_distance():
    assert area({1: 0.0, 2: 1.0, 6: 1.0}) == pytest.approx((0.5 + 4) / 5)  # the plain mean is 2/3


def test_a_gap_is_crossed_straight_and_the_ends_are_not_made_up():
    assert area({1: 2.0, 2: math.nan, 3: 4.0}) == area({1: 2.0, 3: 4.0}) == 3
    assert area({1: math.nan, 2: 5.0, 4: 7.0, 9: math.nan}) == 6
    assert areas(curve({1: math.nan}), ["entropy"]) == {}


def test_of_a_step_logged_twice_the_later_counts():
    twice = pd.concat([curve({1: 9.0, 2: 1.0}), curve({1: 1.0})])
    assert areas(twice, ["entropy"]) == {"auc/entropy": 1.0}


def test_a_stage_has_those_it_logged_of_those_that_are_named():
    metrics = ["auc/entropy", "auc/length/incorrect", "last_fifth/auc"]
    assert named_in(metrics, OF_AREA) == ["entropy", "length/incorrect"]
    assert set(areas(curve({1: 1.0, 2: 3.0}), named_in(metrics, OF_AREA))) == {"auc/entropy"}
    assert areas(curve({1: 1.0}), []) == {}


def test_by_hand_on_a_noisy_curve():
    rng = np.random.default_rng(0)
    steps, values = np.arange(1, 61), rng.normal(size=60)
    by_hand = (values[:-1] + values[1:]).sum() / 2 / 59
    assert area(dict(zip(steps.tolist(), values.tolist(), strict=True))) == pytest.approx(by_hand)


def test_the_first_fifth_is_what_stages_report():
    rows = [(step, "entropy", 1.0 / step) for step in range(3, 60, 4)] + [(60, "reward", 1.0)]
    curve = pd.DataFrame(rows, columns=["step", "metric", "value"])
    named = ["first_fifth/entropy", "first_fifth/reward", "last_fifth/entropy"]
    assert of_curve(curve, named, False)["first_fifth/entropy"] == pytest.approx(
        curves.first_fifths(rows, ["entropy"])["first_fifth/entropy"]
    )
    assert "first_fifth/reward" not in of_curve(curve, named, False)  # it was logged at the end alone
