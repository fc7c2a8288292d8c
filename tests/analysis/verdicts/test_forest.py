"""The forest of verdicts."""

from dataclasses import replace

import pytest

from analysis.verdicts import claims, forest
from analysis.verdicts.decision import judge_run


def test_the_forest_has_a_row_a_tested_claim_in_the_order_of_the_recipe(run, numbers):
    verdicts = judge_run(run, numbers)[-1]
    figure = forest.draw(verdicts)
    tested = [v for v in verdicts if v.n]
    assert [axis.get_title("left") for axis in figure.axes] == [v.id for v in tested]
    assert [axis.get_title("right") for axis in figure.axes] == [v.word for v in tested]
    for v, axis in zip(tested, figure.axes, strict=True):
        dots, diamond = (next(line for line in axis.lines if line.get_marker() == m) for m in "oD")
        assert dots.get_xdata() == pytest.approx(v.differences)
        assert diamond.get_xdata() == pytest.approx([v.estimate])
        assert f"{v.id} " in forest.alt_text(verdicts)


def test_a_long_claim_does_not_run_into_its_verdict(run, numbers):
    verdict = judge_run(run, numbers)[-1][0]
    figure = forest.draw([replace(verdict, id="a-very-long-name-" * 3, word="shown, smaller")])
    figure.canvas.draw()
    left, right = (
        title.get_window_extent() for title in (figure.axes[0]._left_title, figure.axes[0]._right_title)
    )
    assert left.x1 < right.x0


def test_every_verdict_has_a_colour():
    assert set(forest.VERDICT_COLOURS) == set(claims.VERDICTS)
