"""The sigmoid of accuracy over compute: a run that follows it is foretold, and one that leaves it is not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.statistics.sigmoid import Sigmoid, fit, of_first_half

COMPUTE = np.linspace(1.0, 100.0, 100)


@settings(max_examples=20)
@given(st.floats(0.0, 0.4), st.floats(0.5, 0.95), st.floats(10.0, 60.0), st.floats(0.7, 4.0))
def test_the_parameters_of_a_run_without_noise_are_found(start, asymptote, midpoint, exponent):
    law = Sigmoid(start, asymptote, midpoint, exponent)
    found = fit(COMPUTE, law.at(COMPUTE), start)
    assert found is not None
    assert found.asymptote == pytest.approx(asymptote, abs=0.01)
    assert found.midpoint == pytest.approx(midpoint, rel=0.05)
    assert found.exponent == pytest.approx(exponent, rel=0.05)


def test_half_of_the_way_is_gone_at_the_midpoint():
    law = Sigmoid(0.2, 0.8, 30.0, 2.0)
    assert law.at(np.array([30.0]))[0] == pytest.approx(0.5)
    assert law.at(np.array([1e9]))[0] == pytest.approx(0.8)


def test_only_the_first_half_is_fitted():
    accuracy = Sigmoid(0.1, 0.9, 20.0, 2.0).at(COMPUTE)
    stopped = np.where(COMPUTE > 50, 0.3, accuracy)
    whole, broken = (of_first_half(COMPUTE, values) for values in (accuracy, stopped))
    assert whole == broken
    assert whole is not None
    assert whole.at(COMPUTE)[-1] == pytest.approx(accuracy[-1], abs=0.02)


def test_a_run_that_falls_has_an_asymptote_below_its_start():
    law = of_first_half(COMPUTE, Sigmoid(0.6, 0.1, 20.0, 2.0).at(COMPUTE))
    assert law is not None
    assert law.asymptote < 0.3


def test_few_points_have_no_fit():
    assert of_first_half(np.array([]), np.array([])) is None
    assert of_first_half(COMPUTE[:8], COMPUTE[:8] / 100) is None  # four of them in the first half
