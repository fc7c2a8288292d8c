"""Learning curves: stages end to end, and what KL is measured to."""

import math

import pandas as pd
import pytest
from toy_run import changed

from analysis.numbers.run import Run
from analysis.training import learning_curves, series
from encore.recipe.graph import Graph
from encore.recipe.load import load_all


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"beta": 0.0}, ""),
        ({"beta": 0.001}, "the model that training started from"),
        ({"beta": 0.001, "sync_ref_model": True, "ref_model_sync_steps": 400}, "training started from"),
        (
            {"beta": 0.001, "sync_ref_model": True, "ref_model_sync_steps": 20},
            "The reference follows the policy every 20 steps, and the KL is to the latest.",
        ),
    ],
)
def test_the_kl_figure_names_its_reference(run, args, words):
    grpo = run.recipe.layers.content["stages"]["grpo"] | {"args": {"max_steps": 60, **args}}
    reference = learning_curves.reference(changed(run, stages={"grpo": grpo}))
    assert words in reference
    assert bool(words) == bool(reference)


def test_rl_stages_of_an_arm_are_laid_end_to_end():
    rows = [
        ("a", seed, node, step, metric, value)
        for node in ("sft", "one", "two")
        for seed in (0, 1)
        for step in (1, 2)
        for metric, value in (("entropy", 0.5), ("reward", 1.0), ("samples", 8.0 * step * (seed + 1)))
        if node != "sft" or metric == "entropy"
    ]
    table = pd.DataFrame(rows, columns=["arm", "seed", "node", "step", "metric", "value"])
    joined = learning_curves.of_rl(table)
    assert set(joined.node) == {"one", "two"}
    for seed, of_seed in joined.groupby("seed"):
        assert of_seed[of_seed.metric == "entropy"].step.to_list() == [1, 2, 3, 4]
        spent = [samples * (seed + 1) for samples in (8, 16, 24, 32)]  # each seed goes on from its own
        assert of_seed[of_seed.metric == "samples"].value.to_list() == spent


def test_a_teacher_is_no_part_of_its_students_curve():
    graph = Graph(load_all())
    run = Run(graph, "on_policy_distillation", "cpu", ("base-recipe", "rl"), (100,))
    nodes = {"base-recipe": ("teacher", "student"), "rl": ("rl",)}
    rows = [(arm, node, 4.0, "reward", 0.5) for arm, names in nodes.items() for node in names]
    rows.append(("base-recipe", "teacher", math.nan, "last/reward", 0.5))  # a final number stays
    table = pd.DataFrame(rows, columns=["arm", "node", "step", "metric", "value"])
    kept = learning_curves.without_teachers(run, table)
    assert kept.node.to_list() == ["student", "rl", "teacher"]
    assert kept.step.isna().sum() == 1


@pytest.mark.parametrize(("seeds", "lines"), [(3, 3), (learning_curves.MOST_LINES + 1, 0)])
def test_seeds_have_lines_of_their_own_up_to_a_number_of_lines(seeds, lines):
    """Beyond it the range says the same, and a page stays small."""
    rows = [("a", "grpo", s, step, "reward", s / 9) for s in range(seeds) for step in range(1, 30)]
    table = pd.DataFrame(rows, columns=["arm", "node", "seed", "step", "metric", "value"])
    reward = next(curve for curve in series.TRAINING if curve.metrics[0][0] == "reward")
    figure = learning_curves.draw(table, reward, {"a": "#000000"})
    axis = figure.axes[0]
    assert len(axis.lines) == lines + 1  # and the mean


@pytest.mark.parametrize(("reward", "alike"), [([0.1, 0.2], True), ([0.1, 1.2], False), ([0.1], False)])
def test_a_reward_that_is_the_accuracy_is_drawn_once(reward, alike):
    rows = [
        ("a", "grpo", 0, step, metric, value)
        for metric, values in (("accuracy", [0.1, 0.2]), ("reward", reward))
        for step, value in enumerate(values)
    ]
    table = pd.DataFrame(rows, columns=["arm", "node", "seed", "step", "metric", "value"])
    assert learning_curves.reward_is_accuracy(table) == alike
    assert learning_curves.reward_is_accuracy(table[::-1]) == alike


@pytest.mark.parametrize(
    ("measure", "names", "name"),
    [
        ("accuracy", ("kl", "gold-proxy", "accuracy"), "accuracy"),
        ("gold", ("accuracy", "gold-proxy"), "gold-proxy"),
        ("gold", ("accuracy", "kl"), "accuracy"),
        ("accuracy", ("reward", "regret"), "regret"),
        ("accuracy", ("kl",), ""),
    ],
)
def test_the_page_begins_with_the_curve_of_what_arms_are_compared_by(measure, names, name):
    assert series.main(names, measure) == name
