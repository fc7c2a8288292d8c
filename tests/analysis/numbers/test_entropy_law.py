"""The law of entropy: a run that follows it is predicted, and one that leaves it is missed by so much."""

import math
import statistics

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.numbers.curve_metrics import law, of_curve

STEPS = range(10, 1001, 10)


def curve(a: float, b: float, falls: float = 0.0, final_gain: float = 0.0) -> pd.DataFrame:
    """A run whose entropy falls from 1 nat: R = -a exp(H) + b, and `final_gain` more in its last half."""
    rows = []
    for step in STEPS:
        entropy = 1 - falls * step / 1000
        accuracy = -a * math.exp(entropy) + b + final_gain * (step > 500)
        rows += [(step, "entropy", entropy), (step, "accuracy", accuracy)]
    return pd.DataFrame(rows, columns=["step", "metric", "value"])


@given(st.floats(0.01, 1), st.floats(0, 2), st.floats(0.1, 0.99), st.floats(-0.5, 0.5))
def test_the_law_is_found_and_a_departure_is_measured(a, b, falls, gain):
    """What is reached is a mean over five steps; the mean of exp(H) is above exp of the mean of H."""
    found = law(curve(a, b, falls, gain))
    entropies = [1 - falls * step / 1000 for step in STEPS[-5:]]
    ended = statistics.fmean(entropies)
    above = statistics.fmean(map(math.exp, entropies)) - math.exp(ended)
    assert found["entropy_law/predicted"] == pytest.approx(-a * math.exp(ended) + b, abs=1e-4)
    missed = found["entropy_law/reached"] - found["entropy_law/predicted"]
    assert missed == pytest.approx(gain - a * above, abs=1e-6)


def test_only_the_first_15_percent_are_fitted():
    rows = curve(0.2, 1.0, 0.5)
    later = rows.assign(value=rows.value.where((rows.step <= 150) | (rows.metric == "entropy"), 0.0))
    assert law(later)["entropy_law/predicted"] == pytest.approx(law(rows)["entropy_law/predicted"])


def test_what_cannot_be_fitted_is_nan_or_missing():
    assert math.isnan(law(curve(0.2, 1.0))["entropy_law/predicted"])  # the entropy never changes
    short = curve(0.2, 1.0, 0.5)
    short = short[short.step % 50 == 0]  # three rollouts within the first 15%
    assert math.isnan(law(short)["entropy_law/predicted"])
    assert law(short[short.metric == "accuracy"]) == {}


def test_it_is_computed_where_a_claim_names_it():
    rows = curve(0.2, 1.0, 0.5)
    assert "entropy_law/reached" not in of_curve(rows, [], of_sequences=False)
    assert "entropy_law/reached" in of_curve(rows, ["entropy_law/predicted"], of_sequences=False)
