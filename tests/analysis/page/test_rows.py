"""Figures with one row a thing."""

from dataclasses import replace

import pytest

from analysis.page import interval_rows

TASK = "heldout"


def test_models_that_seeds_share_count_once(run, numbers):
    at = ("base-recipe/after", "base-recipe/before", f"{TASK}/accuracy")
    shared = numbers.assign(source="one.json")
    assert len(interval_rows.paired(numbers, *at)) == 3
    assert len(interval_rows.paired(shared, *at)) == 1


def test_rows_are_drawn_from_top_to_bottom_with_their_numbers():
    drawn_rows = [
        interval_rows.of_differences("first", [0.1, 0.3], "#111111"),
        interval_rows.of_differences("second", [-0.2], "#222222"),
    ]
    (axis,) = interval_rows.draw(drawn_rows, "d", zero=True).axes
    words = {text.get_text(): text.get_position()[1] for text in axis.texts}
    assert words["first"] < words["second"]
    assert axis.yaxis_inverted()
    assert "+0.200 [+0.100, +0.300]" in words
    assert f"{interval_rows.MINUS}0.200" in words
    assert not [line for line in axis.lines if line.get_markerfacecolor() == "white"]
    drawn = [line.get_xdata().tolist() for line in axis.lines if line.get_marker() == "D"]
    assert drawn == [[pytest.approx(0.2)], [pytest.approx(-0.2)]]


def test_a_ring_marks_what_was_before():
    row = replace(interval_rows.of_differences("arm", [0.4, 0.6], "#111111"), before=-0.5)
    (axis,) = interval_rows.draw([row], "d").axes
    (ring,) = (line for line in axis.lines if line.get_markerfacecolor() == "white")
    assert ring.get_xdata() == [-0.5]
    assert axis.get_xlim()[0] < -0.5
