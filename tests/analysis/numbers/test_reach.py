"""Updates and samples to an accuracy."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.numbers import curve_metrics
from analysis.numbers.curve_metrics import named_in
from encore.recipe.metric_names import REACHED


def curve(accuracy, samples=None, every=4) -> pd.DataFrame:
    """One row a rollout, at steps `every`, 2 * `every`, …; `samples` a rollout."""
    rows = [(every * (i + 1), "accuracy", value) for i, value in enumerate(accuracy)]
    if samples:
        rows += [(every * (i + 1), "samples", samples * (i + 1.0)) for i in range(len(accuracy))]
    rows += [(1, "loss", 3.0), (2, "loss", 2.0)]
    return pd.DataFrame(rows, columns=["step", "metric", "value"])


def test_the_mean_of_five_rollouts_must_reach_it():
    spike = [0.1, 0.9, 0.1, 0.1, 0.1, 0.1]  # one lucky rollout
    steady = [0.5, 0.5, 0.5, 0.5, 0.5]
    metrics = curve_metrics.reached(curve([*spike, *steady], samples=64), ["0.5", "0.9"])
    assert metrics["updates_to/accuracy=0.5"] == 4 * 11  # 0.1, 0.5 … would not do
    assert metrics["samples_to/accuracy=0.5"] == 64 * 11
    assert math.isnan(metrics["updates_to/accuracy=0.9"])
    assert metrics["updates_to/budget"] == 44
    assert metrics["samples_to/budget"] == 704


def test_fewer_than_five_rollouts_reach_nothing():
    assert math.isnan(curve_metrics.reached(curve([1.0] * 4), ["0.5"])["updates_to/accuracy=0.5"])
    assert curve_metrics.reached(curve([1.0] * 5), ["0.5"])["updates_to/accuracy=0.5"] == 20


def test_without_samples_or_accuracy_there_is_less():
    metrics = curve_metrics.reached(curve([0.6] * 5), ["0.5"])
    assert set(metrics) == {"updates_to/accuracy=0.5", "updates_to/budget"}
    assert curve_metrics.reached(curve([]), ["0.5"]) == {}


def test_samples_are_those_generated_until_the_step():
    late = curve([0.6] * 6)
    logged = pd.DataFrame({"step": [3, 19, 24], "metric": "samples", "value": [10.0, 70.0, 90.0]})
    metrics = curve_metrics.reached(pd.concat([late, logged]), ["0.5"])
    assert metrics["samples_to/accuracy=0.5"] == 70  # the rollout of step 20
    assert metrics["samples_to/budget"] == 90


def test_flops_grow_with_the_tokens_and_seconds_add_up():
    tokens = [(step, "num_tokens", 100.0 * step) for step in (4, 8, 20)]
    steady = pd.concat([curve([0.6] * 5), pd.DataFrame(tokens, columns=["step", "metric", "value"])])
    timing = pd.DataFrame({"step": [4, 8, 20], "metric": "step_time", "value": [0.5, 1.0, 2.0]})
    costs = curve_metrics.spent(steady, timing, flops=8e9)
    metrics = curve_metrics.reached(pd.concat([steady, costs]), ["0.5", "0.9"])
    assert metrics["flops_to/accuracy=0.5"] == metrics["flops_to/budget"] == 8e9
    assert metrics["seconds_to/accuracy=0.5"] == 4 * 0.5 + 4 * 1.0 + 12 * 2.0
    assert math.isnan(metrics["flops_to/accuracy=0.9"])
    by_step = costs[costs.metric == "flops"].set_index("step").value.to_dict()
    assert by_step == {4: 1.6e9, 8: 3.2e9, 20: 8e9}
    assert not len(curve_metrics.spent(curve([0.6]), timing.iloc[:0], flops=8e9))


def test_flops_of_training_grow_with_the_tokens_that_dynamic_sampling_keeps():
    counts = {"num_tokens": [100.0, 400.0], "dynamic/trained_tokens": [50.0, 100.0]}
    rows = [
        (step, name, value)
        for name, values in counts.items()
        for step, value in zip((4, 8), values, strict=True)
    ]
    tokens = pd.DataFrame(rows, columns=["step", "metric", "value"])
    costs = curve_metrics.spent(tokens, tokens.iloc[:0], flops=1400.0, training_flops=600.0)
    assert costs.value.tolist() == [100 * 2 + 50 * 6, 400 * 2 + 100 * 6]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_a_higher_level_is_never_reached_sooner(accuracy, a, b):
    low, high = sorted((a, b))
    metrics = curve_metrics.reached(curve(accuracy), [str(low), str(high)])
    soon, late = (metrics[f"updates_to/accuracy={level}"] for level in (low, high))
    assert math.isnan(late) or soon <= late <= metrics["updates_to/budget"]


@pytest.mark.parametrize(
    ("metric", "level"),
    [
        ("updates_to/accuracy=0.5", ["0.5"]),
        ("samples_to/accuracy=.25", [".25"]),
        ("updates_to/accuracy=1.0", ["1.0"]),
        ("updates_to/accuracy=50", []),
        ("updates_to/accuracy=", []),
        ("updates_to/reward=0.5", []),
        ("heldout/accuracy", []),
    ],
)
def test_levels_are_those_that_claims_name(metric, level):
    assert named_in([metric, "x/y", metric], REACHED) == level
    assert (curve_metrics.budget_of(metric) is not None) == bool(level)
