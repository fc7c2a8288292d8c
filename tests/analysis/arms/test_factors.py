"""The figure of dials: the levels of each factor, in the recipe's order, with what was measured."""

import json

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from toy_run import changed

from analysis.arms import factors
from analysis.numbers.means import Mean
from encore.recipe.graph import Node

TASK = "heldout"
FACTORS = {
    "reward": {"both": "base-recipe", "format": "format-only", "coin": "random"},
    "cap": {"short": "base-recipe", "long": "longer-cap", "none": "no-such-arm"},
    "one level": {"a": "base-recipe", "b": "no-such-arm"},
}


@pytest.fixture(scope="module")
def turned(run):
    return changed(run, factors=FACTORS)


def accuracy(run, arm):
    """The mean final accuracy of an arm, read from the evaluations themselves."""
    nodes = [Node(run.name, run.scale, arm, seed, "after", "eval") for seed in run.seeds]
    read = [json.loads(run.sentinel(node).read_text())["tasks"][TASK]["metrics"] for node in nodes]
    return np.mean([metrics["accuracy"]["value"] for metrics in read])


def test_levels_stand_in_the_recipes_order_with_what_was_measured(turned, numbers):
    shown = factors.levels(turned, numbers, TASK, "accuracy")
    assert {factor: [level.name for level in each] for factor, each in shown.items()} == {
        "reward": ["both", "format", "coin"],
        "cap": ["short", "long"],
    }
    for each in shown.values():
        for level in each:
            assert level.result.value == pytest.approx(accuracy(turned, level.arm))
    assert factors.in_words(shown).startswith(f"reward: both {accuracy(turned, 'base-recipe'):.3f} [")


def test_every_panel_shows_its_levels_and_the_base_arm_across(turned, numbers, palette):
    shown = factors.levels(turned, numbers, TASK, "accuracy")
    figure = factors.draw(shown, "base-recipe", palette, "accuracy")
    base = accuracy(turned, "base-recipe")
    for axis, (factor, each) in zip(figure.axes, shown.items(), strict=True):
        assert axis.get_title(loc="left") == factor
        assert [label.get_text() for label in axis.get_xticklabels()] == [level.name for level in each]
        marks = [line.get_ydata()[0] for line in axis.lines if line.get_marker() == "o"]
        assert marks == pytest.approx([level.result.value for level in each])
        dotted = [line.get_ydata()[0] for line in axis.lines if line.get_linestyle() == ":"]
        assert dotted == pytest.approx([base])


def test_the_label_of_the_y_axis_stands_beside_the_numbers():
    """Numbers of a narrow range have two decimals and are the widest that an accuracy has."""
    results = {"a": Mean(0.93, 0.91, 0.94, 8, "seeds"), "b": Mean(0.94, 0.92, 0.95, 8, "seeds")}
    levels = [factors.Level(arm, arm, result) for arm, result in results.items()]
    figure = factors.draw({"dial": levels}, "a", {"b": "#000000"}, "accuracy on heldout")
    FigureCanvasAgg(figure).draw()
    (axis,) = figure.axes
    numbers = [label.get_window_extent().x0 for label in axis.get_yticklabels()]
    assert figure._supylabel.get_window_extent().x1 < min(numbers)


def test_a_recipe_without_factors_has_no_such_figure(run, numbers, palette):
    assert factors.draw(factors.levels(run, numbers, TASK, "accuracy"), "base-recipe", palette, "") is None
