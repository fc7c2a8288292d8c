"""Where gold reward turns, read off a curve."""

import math

import numpy as np
import pandas as pd
import pytest

from analysis.numbers import curve_metrics
from analysis.numbers.curve_metrics import named_in
from encore.recipe.metric_names import AT_KL, of_training

GOLD, PROXY = curve_metrics.CURVES["gold"], curve_metrics.CURVES["proxy"]


def curve(**columns) -> pd.DataFrame:
    names = {"gold": GOLD, "proxy": PROXY, "kl": "kl"}
    rows = [(i + 1, names[name], v) for name, column in columns.items() for i, v in enumerate(column)]
    return pd.DataFrame(rows, columns=["step", "metric", "value"])


def by_hand(values, i):
    return float(np.mean(values[i - 4 : i + 1]))


def test_the_peak_is_that_of_means_of_five():
    gold = [0, 0.2, 0.4, 9, 0.6, 1, 1, 1, 1, 1, 0.5, 0, 0, 0, 0]  # one lucky rollout
    kl = [0.1 * i for i in range(15)]
    metrics = curve_metrics.peaks(curve(gold=gold, kl=kl), True)
    means = [by_hand(gold, i) for i in range(4, 15)]
    top = int(np.argmax(means))
    assert metrics["peak/gold"] == pytest.approx(means[top])
    assert metrics["rise/gold"] == pytest.approx(means[top] - means[0])
    assert metrics["drop/gold"] == pytest.approx(means[top] - means[-1])
    assert metrics["kl_at_peak/gold"] == pytest.approx(by_hand(kl, top + 4))
    assert "peak/proxy" not in metrics


def test_a_rising_proxy_does_not_drop():
    metrics = curve_metrics.peaks(curve(proxy=range(10), gold=range(10, 0, -1)), True)
    assert metrics["drop/proxy"] == metrics["rise/gold"] == 0
    assert metrics["rise/proxy"] == metrics["drop/gold"] == 5
    assert "kl_at_peak/gold" not in metrics


def test_gold_at_a_divergence_lies_between_rollouts():
    gold, kl = [0.0, 1, 2, 3, 4, 5, 6, 7], [0.0, 1, 2, 3, 4, 6, 8, 10]
    metrics = curve_metrics.peaks(curve(gold=gold, kl=kl), True, ["2.5", "1", "100", "2"])
    assert metrics["gold_at_kl/2.5"] == pytest.approx(2 + (2.5 - 2) / (3.2 - 2))  # means of five
    assert metrics["gold_at_kl/2"] == pytest.approx(2)
    assert math.isnan(metrics["gold_at_kl/100"])
    assert math.isnan(metrics["gold_at_kl/1"])  # before the first mean of five
    assert not any("kl" in name for name in curve_metrics.peaks(curve(gold=gold, kl=kl), False, ["2.5"]))


def test_too_short_or_without_reward_there_is_nothing():
    assert curve_metrics.peaks(curve(gold=[1, 2, 3, 4], kl=[1, 2, 3, 4]), True, ["1"]) == {}
    assert curve_metrics.peaks(curve(kl=range(9)), True, ["1"]) == {}


@pytest.mark.parametrize(
    ("metric", "ok"),
    [
        ("peak/gold", True), ("drop/proxy", True), ("kl_at_peak/gold", True), ("gold_at_kl/2.5", True),
        ("proxy_at_kl/.5", True), ("peak/", False), ("drop/accuracy", False), ("gold_at_kl/", False),
        ("gold_at_kl/x", False), ("gold_at_kl", False),
    ],
)  # fmt: skip
def test_claims_may_name_them(metric, ok):
    assert of_training(metric) == ok
    wanted = [metric.rpartition("/")[2]] if ok and "_at_kl/" in metric else []
    assert named_in(["x/y", metric], AT_KL) == wanted
