"""A run that collapsed ends below half of its best."""

import pandas as pd
import pytest

from analysis.numbers import curve_metrics
from analysis.numbers.curve_metrics import named_in
from encore.recipe.metric_names import COLLAPSED, of_training


def curve(accuracy: list[float]) -> pd.DataFrame:
    rows = [(4 * (i + 1), "accuracy", value) for i, value in enumerate(accuracy)]
    return pd.DataFrame([*rows, (1, "loss", 3.0)], columns=["step", "metric", "value"])


@pytest.mark.parametrize(
    ("accuracy", "collapsed"),
    [
        ([0.2] * 5 + [0.6] * 5 + [0.25] * 5, 1.0),  # ends above its beginning, and below half of its best
        ([0.2] * 5 + [0.6] * 5 + [0.35] * 5, 0.0),
        ([0.2] * 10, 0.0),  # nothing learned, nothing lost
        ([0.6] * 10 + [0.0], 0.0),  # one bad rollout
        ([0.2] * 5 + [0.9] + [0.2] * 5, 0.0),  # one lucky rollout was never its best
        ([0.0] * 10, 0.0),
        ([0.2] * 5 + [0.0] * 5, 1.0),
    ],
)
def test_it_ends_below_half_of_its_best_five_rollouts(accuracy, collapsed):
    assert curve_metrics.collapsed(curve(accuracy), ["accuracy"]) == {"collapsed/accuracy": collapsed}


def test_without_five_rollouts_or_the_curve_there_is_none():
    assert curve_metrics.collapsed(curve([0.5] * 4), ["accuracy"]) == {}
    assert curve_metrics.collapsed(curve([]), ["accuracy"]) == {}
    assert curve_metrics.collapsed(curve([0.5] * 5), []) == {}


@pytest.mark.parametrize(
    ("metric", "named"),
    [("collapsed/accuracy", ["accuracy"]), ("collapsed/gold", []), ("drop/gold", [])],
)
def test_claims_and_gates_name_it(metric, named):
    assert named_in([metric], COLLAPSED) == named
    assert not named or of_training(metric)
