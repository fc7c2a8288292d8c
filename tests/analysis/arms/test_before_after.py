"""Where the curves before and after training cross."""

import numpy as np
import pytest
from toy_run import ARMS

from analysis.arms import before_after

TASK = "heldout"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([0.2, 0.5, 0.7, 0.9], [0.6, 0.7, 0.75, 0.8]),
        ([0.6, 0.7, 0.75, 0.8], [0.2, 0.5, 0.7, 0.9]),
        ([0.1, 0.2, 0.2, 0.3], [0.3, 0.2, 0.1, 0.2]),  # at a measured k
    ],
)
def test_the_crossing_is_where_the_lines_meet(before, after):
    ks = [1, 4, 16, 64]
    grid = np.linspace(0, 6, 100_001)
    gap = np.interp(grid, np.log2(ks), after) - np.interp(grid, np.log2(ks), before)
    brute = 2 ** grid[1:][np.sign(gap[1:]) != np.sign(gap[0])][0]
    assert before_after.crossing(ks, before, after) == pytest.approx(brute, rel=1e-3)


def test_curves_that_only_touch_do_not_cross():
    assert before_after.crossing([1, 2, 4], [0.2, 0.3, 1.0], [0.4, 0.3, 1.0]) is None


def test_a_crossing_is_marked_where_it_is_sure(run, numbers, palette):
    figure = before_after.pass_at_k(run, numbers, TASK, palette)
    panels = {axis.get_title("left"): axis for axis in figure.axes if axis.get_visible()}
    marked = {arm: [t.get_text() for t in axis.texts] for arm, axis in panels.items()}
    assert marked["base-recipe"] == []  # ahead at every k
    for arm in ARMS:
        curves = before_after.curves(run, numbers, f"{TASK}/pass@")
        at = before_after.crossing_of(curves, arm, run.ends)
        assert marked[arm] == ([f"k = {at:.1f}"] if at else [])
    narrow = {("a", "before"): [0.2, 0.9], ("a", "after"): [0.5, 0.6]}
    for width, sure in ((0.1, True), (0.2, False)):
        by_place = {
            key: {
                k: before_after.Mean(v, v - width, v + width, 5, "seeds")
                for k, v in zip((1, 16), values, strict=True)
            }
            for key, values in narrow.items()
        }
        assert (before_after.crossing_of(by_place, "a", ["before", "after"]) is not None) == sure
