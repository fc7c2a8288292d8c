"""Evaluations over the steps of a stage: from the artefacts of jobs to a figure."""

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest
import toy_run

from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.training import evaluations

STEPS = {0: 0.19, 20: 0.4, 40: 0.6, 60: 0.8}


@pytest.fixture
def followed(run: Run, tmp_path) -> Run:
    """Two arms and two seeds of the toy run, the first arm measured every 20 steps of its 60."""
    small = replace(run, arms=("base-recipe", "format-only"), seeds=(0, 1), root=tmp_path)
    arms = run.recipe.layers.content["arms"]
    own = arms["base-recipe"] | {"stages": {"grpo": {"evaluate_every": 20}}}
    small = toy_run.changed(small, arms=arms | {"base-recipe": own})
    shutil.copytree(run.root / "recipes", tmp_path / "recipes")
    for node in small.all_nodes():
        (toy_run.evaluation if node.kind == "eval" else toy_run.stage)(small, node)
    for node in small.all_nodes():
        checkpoint, step = small.graph.measured(node)
        if node.kind == "eval" and node.arm == "base-recipe":
            path = small.sentinel(node)
            found = json.loads(path.read_text())
            level = STEPS[step or {"before": 0, "after": 60}[checkpoint]]
            found["tasks"]["heldout"]["metrics"]["accuracy"]["value"] = level + node.seed / 100
            path.write_text(json.dumps(found))
    return small


def test_the_table_has_them_by_step_and_no_final_number_is_another(followed: Run):
    table = collect(followed)
    rows = table[(table.arm == "base-recipe") & (table.metric == "heldout/accuracy") & (table.seed == 1)]
    found = {(row.node, row.step if row.step > 0 else None): row.value for row in rows.itertuples()}
    expected = {("after", 20): 0.41, ("after", 40): 0.61, ("after", None): 0.81}
    assert found == pytest.approx(expected | {("before", None): 0.2})
    assert len({*rows.source}) == 4
    assert {*final(table).node} == {"tiny_lm/pretrain", "grpo", "before", "after"}


def test_the_figure_goes_from_the_base_to_the_product(followed: Run, palette):
    table = collect(followed)
    rows = evaluations.over_steps(followed, table, "base-recipe", "after")
    line = rows[rows.metric == "heldout/accuracy"].groupby("step").value.mean()
    assert line.to_dict() == pytest.approx({0.0: 0.195, 20.0: 0.405, 40.0: 0.605, 60.0: 0.805})
    named = {plan.name: plan for plan in evaluations.plans(followed, table, palette)}
    assert [*named] == ["evaluations-after-heldout"]
    plan = named["evaluations-after-heldout"]
    assert plan.title == "Accuracy on heldout by steps, checkpoint after"
    figure = plan.draw()
    assert [axis.get_title(loc="left") for axis in figure.axes if axis.get_visible()] == ["base-recipe"]
    drawn = [line.get_xydata().tolist() for line in figure.axes[0].lines]
    assert [[0.0, pytest.approx(0.195)], [20.0, pytest.approx(0.405)]] == drawn[-1][:2]


def test_without_the_key_there_is_none(run: Run, table: pd.DataFrame, palette):
    assert not [*evaluations.plans(run, table, palette)]
