"""The table of arms."""

from dataclasses import replace

from analysis.arms.levels import levels
from analysis.numbers.table import collect, final
from encore.recipe.graph import Graph
from encore.recipe.shared import Shared


def test_the_base_is_shown_once_with_its_best_template(run, table):
    arms = levels(run, table)
    base = arms[(arms.arm == "base-recipe") & (arms.checkpoint == "before")]
    assert dict(zip(base.task, base.best_template, strict=True)) == {"heldout": True, "heldout-plain": False}
    assert not len(arms[(arms.arm == "random") & (arms.checkpoint == "before")])
    assert set(arms[arms.checkpoint == "after"].over) == {"seeds"}
    assert set(base.over) == {"seeds"}
    assert set(base.models) == {1}  # pinned: asked other problems with each seed


def test_a_base_of_one_measurement_has_the_interval_of_its_problems(run):
    once = replace(run, graph=Graph(run.graph.recipes, Shared({("tiny_lm", "pretrain"): 0}, problems=True)))
    arms = levels(once, final(collect(once)))
    base = arms[(arms.arm == "base-recipe") & (arms.checkpoint == "before")]
    assert set(base.over) == {"items"}
    assert set(base.models) == {1}
