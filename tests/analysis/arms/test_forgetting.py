"""The figure of what is forgotten: points of every arm and other task, from the start of training on."""

import pandas as pd
import pytest

from analysis.arms import forgetting
from analysis.numbers.table import final, measured


@pytest.fixture(scope="module")
def moved(rlhf_table):
    """Final numbers with an old task, whose accuracy falls by 0.02 for each nat on the task of training."""
    numbers = final(rlhf_table)
    kl = numbers[numbers.metric == "heldout/kl"]
    forward = kl.assign(metric="heldout/forward_kl")
    fallen = {name: 0.9 - 0.02 * kl[name] for name in ("value", "low", "high")}
    return pd.concat([numbers, forward, kl.assign(metric="old/accuracy", **fallen)], ignore_index=True)


def test_each_arm_has_its_checkpoints_on_the_old_task_after_the_first_arms_start(rlhf, moved):
    curves = forgetting.curves(rlhf, moved)
    assert {curve.task for curve in curves} == {"tax-sort", "tax-chain", "old"}  # not the task of training
    start = rlhf.checkpoints(rlhf.arms[0])[0]
    for curve in (curve for curve in curves if curve.task == "old"):
        assert curve.points[0].checkpoint == start
        for point in curve.points:
            assert point.accuracy.value == pytest.approx(0.9 - 0.02 * point.kl.value)
        last = curve.points[-1]
        values = measured(moved, f"{curve.arm}/{last.checkpoint}", "heldout/forward_kl").value
        assert last.kl.value == pytest.approx(values.mean())
    assert forgetting.in_words(curves).startswith(f"{curves[0].arm}: ")


def test_a_line_an_arm_in_a_panel_a_task(rlhf, moved):
    curves = [curve for curve in forgetting.curves(rlhf, moved) if curve.task == "old"]
    figure = forgetting.draw(curves, dict.fromkeys(rlhf.arms, "#000000"))
    (axis,) = figure.axes
    lines = [line for line in axis.lines if line.get_marker() == "o"]
    assert [list(line.get_ydata()) for line in lines] == [
        [pytest.approx(point.accuracy.value) for point in curve.points] for curve in curves
    ]


def test_without_a_forward_kl_there_is_no_figure(rlhf, rlhf_table):
    assert forgetting.curves(rlhf, final(rlhf_table)) == []
    assert forgetting.draw([], {}) is None
