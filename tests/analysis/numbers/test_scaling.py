"""The metrics of the sigmoid of accuracy over compute, on curves that are sigmoids."""

import math

import numpy as np
import pandas as pd
import pytest

from analysis.numbers.curve_metrics import of_curve, scaling
from encore.recipe.metric_names import SIGMOID, of_training


def curve(accuracy: np.ndarray, flops: np.ndarray) -> pd.DataFrame:
    steps = np.arange(1, len(accuracy) + 1)
    named = {"accuracy": accuracy, "flops": flops}
    frames = [pd.DataFrame({"step": steps, "metric": name, "value": value}) for name, value in named.items()]
    return pd.concat(frames, ignore_index=True)


def sigmoid(compute: np.ndarray, end: float, middle: float, steep: float) -> np.ndarray:
    return 0.2 + (end - 0.2) / (1 + (middle / compute) ** steep)


@pytest.mark.parametrize(("end", "middle", "steep"), [(0.9, 2.0**33, 1.5), (0.6, 2.0**34, 2.5)])
def test_a_sigmoid_is_found_and_its_half_predicts_its_end(end: float, middle: float, steep: float):
    compute = np.linspace(1e6, 6e10, 120)
    accuracy = sigmoid(compute, end, middle, steep)
    metrics = scaling(curve(accuracy, compute))
    assert metrics["sigmoid/asymptote"] == pytest.approx(end, abs=0.01)
    assert metrics["sigmoid/midpoint"] == pytest.approx(math.log2(middle), abs=0.05)
    assert metrics["sigmoid/predicted"] == pytest.approx(metrics["sigmoid/reached"], abs=0.01)
    assert metrics["sigmoid/reached"] == pytest.approx(accuracy[-5:].mean())


def test_the_prediction_does_not_see_the_second_half():
    compute = np.linspace(1e6, 6e10, 120)
    rising = sigmoid(compute, 0.9, 2.0**33, 1.5)
    falling = np.where(compute > 3.1e10, 0.1, rising)
    one, other = (scaling(curve(accuracy, compute)) for accuracy in (rising, falling))
    assert one["sigmoid/predicted"] == pytest.approx(other["sigmoid/predicted"])
    assert other["sigmoid/reached"] == pytest.approx(0.1)


def test_twice_the_compute_is_one_more():
    compute = np.linspace(1e6, 6e10, 120)
    accuracy = sigmoid(compute, 0.9, 2.0**33, 1.5)
    costly = scaling(curve(accuracy, 2 * compute))["sigmoid/midpoint"]
    assert costly - scaling(curve(accuracy, compute))["sigmoid/midpoint"] == pytest.approx(1, abs=0.02)


def test_too_few_rollouts_and_no_operations():
    few = scaling(curve(np.array([0.2, 0.3, 0.4]), np.array([1.0, 2.0, 3.0])))
    assert few.pop("sigmoid/reached") == pytest.approx(0.3)
    assert all(math.isnan(value) for value in few.values())
    rows = curve(np.full(9, 0.5), np.arange(1.0, 10.0))
    assert scaling(rows[rows.metric == "accuracy"]) == {}


def test_it_is_fitted_only_if_a_claim_names_it():
    rows = curve(np.linspace(0.2, 0.6, 20), np.arange(1.0, 21.0))
    assert not {*SIGMOID} & {*of_curve(rows, [], of_sequences=False)}
    assert {*SIGMOID} <= {*of_curve(rows, ["sigmoid/asymptote"], of_sequences=False)}
    assert all(map(of_training, SIGMOID))
    assert not of_training("sigmoid/exponent")
