"""Histograms of importance ratios."""

import math
from dataclasses import replace

import pytest
from toy_run import ARMS, EDGES, changed

from analysis.training import ratio_histograms


def test_ratios_are_added_up_and_drawn_as_shares(run, palette):
    one = ratio_histograms.read_histograms(replace(run, seeds=(0,)), "base-recipe")
    three = ratio_histograms.read_histograms(run, "base-recipe")
    assert three["count"].sum() == 3 * one["count"].sum() > 0
    assert [*one[one.level == "token"].sort_values("low").low, EDGES[-1]] == pytest.approx(EDGES)
    figure = ratio_histograms.draw(run, palette)
    axis = next(axis for axis in figure.axes if axis.get_title("left") == "base-recipe")
    assert axis.get_xscale() == "symlog"
    token, sequence = (patch.get_data() for patch in axis.patches)
    counts = one[one.level == "token"].sort_values("low")["count"]
    assert token.values == pytest.approx(counts / counts.sum())
    assert token.values.sum() == pytest.approx(1) == pytest.approx(sequence.values.sum())
    clip = sorted(line.get_xdata()[0] for line in axis.lines)
    assert clip == pytest.approx([math.log(0.8), math.log(1.2)])


def test_a_clip_range_wider_than_the_ratios_is_drawn_where_it_can_be(run, palette):
    stage = run.recipe.layers.content["stages"]["grpo"]
    wide = changed(run, stages={"grpo": stage | {"args": stage["args"] | {"epsilon": 10.0}}})
    (axis, *_) = ratio_histograms.draw(replace(wide, arms=ARMS[:1]), palette).axes
    assert [line.get_xdata()[0] for line in axis.lines] == pytest.approx([math.log(11)])


def test_without_ratios_there_is_no_figure(run, palette, tmp_path):
    assert ratio_histograms.draw(replace(run, root=tmp_path), palette) is None
