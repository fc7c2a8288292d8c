"""Recipe r1: its stages follow one from another as the paper's do, and a change redoes what follows alone."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from papers import GRAPH, RECIPES

from encore.recipe.graph import Graph, Node
from encore.recipe.layers import Layers, merge
from encore.recipe.recipe import Recipe

STAGES = RECIPES["r1"].stages("cpu", "base-recipe")
CHECKPOINTS = ("base", "zero", "dev1", "dev2", "dev3", "scenarios", "r1")
AFTER_COLD_START = {*STAGES} - {"zero"}  # what comes of its traces
FROM_SFT = AFTER_COLD_START - {"cold_start", "reasoning", "rejection"}


def node(arm: str, name: str, kind: str = "stage", scale: str = "cpu") -> Node:
    return Node("r1", scale, arm, 0, name, kind)


def changed(change: Mapping[str, Any]) -> set[str]:
    """The stages of the main arm that a change of scale cpu redoes."""
    spec = deepcopy(RECIPES["r1"].layers.content)
    spec["scales"]["cpu"]["stages"] = merge(spec["scales"]["cpu"]["stages"], change)
    graph = Graph({**RECIPES, "r1": Recipe("r1", Layers(spec))})
    return {
        name
        for name in STAGES
        if graph.lineage(node("base-recipe", name)) != GRAPH.lineage(node("base-recipe", name))
    }


@pytest.mark.parametrize(
    ("change", "redone"),
    [
        ({"cold_start": {"corpus": {"documents": 501}}}, AFTER_COLD_START),
        ({"rejection": {"problems": 9}}, AFTER_COLD_START - {"cold_start", "reasoning"}),
        ({"sft": {"args": {"learning_rate": 1e-5}}}, FROM_SFT),
        ({"label": {"validation": 0.5}}, {"label", "reward_model", "preference"}),
        ({"preference": {"args": {"max_steps": 4}}}, {"preference"}),
        ({"zero": {"args": {"max_steps": 4}}}, {"zero"}),
    ],
)  # fmt: skip
def test_a_change_redoes_what_follows_it_and_nothing_else(change, redone):
    assert changed(change) == redone


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_fine_tuning_starts_from_the_base_again(scale):
    """v1 §2.3.3: DeepSeek-V3-Base, not the checkpoint of RL whose samples it learns from."""

    def start(name: str) -> Any:
        return (
            GRAPH.model_of(node("base-recipe", name, scale=scale))
            or GRAPH.inputs(node("base-recipe", name, scale=scale))["policy"]
        )

    assert start("sft") == start("cold_start") == start("zero")
    needs = GRAPH.stage(node("base-recipe", "sft", scale=scale)).needs
    assert needs["data"] == "rejection"


@pytest.mark.parametrize(
    ("arm", "own"),
    [
        ("no-cold-start", {"reasoning"}),
        ("cold-start-50", {"cold_start", "reasoning"}),
        ("cold-start-2000", {"cold_start", "reasoning"}),
        ("no-language-reward", {"reasoning"}),
        ("kl-fixed", {"reasoning"}),
        ("kl-reset", {"reasoning"}),
        ("sft-from-dev2", {"sft"}),
        ("one-sft", {"sft"}),
        ("preference-long", {"scenarios", "preference"}),
    ],
)
def test_an_arm_trains_only_what_it_changes(arm, own):
    stages = RECIPES["r1"].stages("cpu", arm)
    assert {name for name in stages if GRAPH.owner(node(arm, name)).arm == arm} == own


def test_the_two_arms_of_the_reference_differ_in_nothing_else():
    fixed, reset = (GRAPH.config(node(arm, "reasoning"))["args"] for arm in ("kl-fixed", "kl-reset"))
    assert fixed["beta"] == reset["beta"] > GRAPH.config(node("base-recipe", "reasoning"))["args"]["beta"]
    assert {name for name in fixed if fixed[name] != reset[name]} == {"ref_model_sync_steps"}
    assert reset["ref_model_sync_steps"] < reset["max_steps"] <= fixed["ref_model_sync_steps"]


def test_preference_rewards_have_the_papers_share_of_stage_4():
    """400 of 1,700 steps (Nature), at scale cpu a quarter; in arm preference-long all of as many."""
    steps = {
        (scale, name): GRAPH.config(node("base-recipe", name, scale=scale))["args"]["max_steps"]
        for scale in ("cpu", "paper")
        for name in ("scenarios", "preference")
    }
    assert steps["paper", "scenarios"] + steps["paper", "preference"] == 1700
    for scale in ("cpu", "paper"):
        share = steps[scale, "preference"] / (steps[scale, "scenarios"] + steps[scale, "preference"])
        assert share == pytest.approx(400 / 1700, abs=0.02)
    long = [GRAPH.config(node("preference-long", name)) for name in ("scenarios", "preference")]
    assert long[0]["domains"] == long[1]["domains"]
    assert [one["args"]["max_steps"] for one in long] == [
        steps["cpu", "scenarios"],
        steps["cpu", "preference"],
    ]


def test_zero_has_as_many_updates_of_rl_as_r1():
    updates = {
        name: GRAPH.config(node("base-recipe", name))["args"]["max_steps"]
        for name in ("zero", "reasoning", "scenarios", "preference")
    }
    assert updates.pop("zero") == sum(updates.values())


def test_every_checkpoint_of_the_main_arm_is_measured_by_every_task():
    for name in CHECKPOINTS:
        tasks = GRAPH.config(node("base-recipe", name, "eval"))["tasks"]
        assert [*tasks] == ["heldout", "english", "spanish", "requests"]
    assert RECIPES["r1"].checkpoints("cpu", "base-recipe") == [*CHECKPOINTS]
