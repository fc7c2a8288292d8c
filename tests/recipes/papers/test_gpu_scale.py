"""Scale `gpu`: one GPU of 80 GB has room for every stage, and budgets are as the recipes say."""

from typing import Any

import pytest
from papers import GRAPH, RECIPES

from recipes.spec.graph import Node

WITH_GPU = [name for name, recipe in RECIPES.items() if "gpu" in recipe.spec["scales"]]
MEMORY = 80  # GB
PARAMETERS = 1.54  # billion, of Qwen2.5-1.5B and Qwen2.5-Math-1.5B
TRAINED = 16  # bytes a parameter: itself, its gradient and Adam's two moments, all in float32
ACTIVATIONS = 16  # GB left for them, for CUDA and for what is cut in pieces

SOURCES = [
    # recipe, arm, stage, what, value, source
    *(
        ("r1", "base-recipe", stage, *setting)
        for stage in ("zero", "reasoning", "scenarios", "preference")
        for setting in (
            ("learning_rate", 3e-6, "Nature, Methods"),
            ("beta", 0.001, "Nature, Methods"),
            ("epsilon", 10.0, "Nature, Methods: RL stage 1"),
            ("num_generations", 16, "Nature, Methods"),
        )
    ),
    ("r1", "base-recipe", "cold_start", "learning_rate", 5e-5, "2501.12948v2 B.4.2"),
    ("r1", "base-recipe", "sft", "learning_rate", 5e-5, "2501.12948v2 B.4.2"),
    ("r1", "base-recipe", "sft", "num_train_epochs", 2, "2501.12948v1 §2.3.3"),
    ("r1", "base-recipe", "reward_model", "learning_rate", 6e-6, "Nature, Methods"),
    ("r1", "base-recipe", "zero", "temperature", 1.0, "Nature"),
    ("r1", "base-recipe", "preference", "temperature", 0.7, "Nature"),
    ("distill", "base-recipe", "sft", "learning_rate", 1e-4, "2501.12948v2 B.4.3"),
    ("distill", "zero-1.5b", "rl", "learning_rate", 2e-6, "2501.12948v2 B.4.1"),
    ("distill", "zero-1.5b", "rl", "num_generations", 16, "Nature, Methods"),
]


def stages(recipe: str) -> list[Node]:
    of = RECIPES[recipe]
    return [
        Node(recipe, "gpu", arm, 0, name, "stage") for arm in of.arms("gpu") for name in of.stages("gpu", arm)
    ]


EVERY = [node for recipe in WITH_GPU for node in stages(recipe)]


def config(recipe: str, arm: str, stage: str) -> dict[str, Any]:
    return GRAPH.config(Node(recipe, "gpu", arm, 0, stage, "stage"))


def batch(args: dict[str, Any]) -> int:
    return args["per_device_train_batch_size"] * args["gradient_accumulation_steps"]


def test_the_recipes_that_have_it():
    assert {"r1", "distill"} <= {*WITH_GPU}


@pytest.mark.parametrize("node", EVERY, ids=lambda node: f"{node.recipe}-{node.arm}-{node.name}")
def test_a_stage_has_one_gpu_and_fits_on_it(node):
    stage = GRAPH.config(node)
    if stage["run"] == "label":
        return
    assert GRAPH.resources(node)["gpu"] == 1
    args = stage["args"]
    held = 0.0
    if stage["run"] != "rejection_sampling":
        held += TRAINED * PARAMETERS
        held += 4 * PARAMETERS * bool(args.get("beta"))  # the reference
    held += 4 * PARAMETERS * ("reward_model" in GRAPH.inputs(node))
    held += MEMORY * args.get("vllm_gpu_memory_utilization", 0.3) * bool(args.get("use_vllm"))
    assert held <= MEMORY - ACTIVATIONS


@pytest.mark.parametrize("recipe", WITH_GPU)
def test_an_evaluation_has_one_gpu_and_room_for_the_reward_model(recipe):
    for arm in RECIPES[recipe].arms("gpu"):
        for name in RECIPES[recipe].checkpoints("gpu", arm):
            node = Node(recipe, "gpu", arm, 0, name, "eval")
            assert GRAPH.resources(node)["gpu"] == 1
            spec = GRAPH.config(node)
            share = spec.get("backend_args", {}).get("gpu_memory_utilization", 0.9)
            scored = any("proxy" in task.get("score", []) for task in spec["tasks"].values())
            assert MEMORY * share + 4 * PARAMETERS * scored <= MEMORY - 4


@pytest.mark.parametrize(("recipe", "arm", "stage", "what", "value", "source"), SOURCES)
def test_a_setting_with_a_source_is_the_papers(recipe, arm, stage, what, value, source):
    assert config(recipe, arm, stage)["args"][what] == value, source


def test_zero_has_as_many_updates_of_as_many_responses_as_r1():
    args = {
        name: config("r1", "base-recipe", name)["args"]
        for name in ("zero", "reasoning", "scenarios", "preference")
    }
    updates = {name: of["max_steps"] for name, of in args.items()}
    assert updates.pop("zero") == sum(updates.values())
    assert {(batch(of), of["steps_per_generation"]) for of in args.values()} == {(64, 64)}
    stage_4 = updates["scenarios"] + updates["preference"]
    assert updates["preference"] / stage_4 == pytest.approx(400 / 1700, abs=0.02)
    assert all(one["max_steps"] % 4 == 0 for one in args.values())  # a rollout's 4 updates are all made


def test_stage_3_of_r1_starts_from_the_base_again():
    names = ("zero", "cold_start", "sft")
    models = [GRAPH.model_of(Node("r1", "gpu", "base-recipe", 0, name, "stage")) for name in names]
    assert models[0] is not None
    assert models == [models[0]] * 3


def test_a_student_learns_from_as_many_traces_as_the_one_of_rl_alone_has_responses():
    traces, responses = config("distill", "base-recipe", "sft"), config("distill", "zero-1.5b", "rl")
    models = [
        GRAPH.model_of(Node("distill", "gpu", arm, 0, name, "stage"))
        for arm, name in (("base-recipe", "sft"), ("zero-1.5b", "rl"))
    ]
    assert models[0] == models[1]
    for what in (batch, lambda args: args["max_steps"]):
        assert what(traces["args"]) == what(responses["args"])
    # RL after distillation goes on from it, and reads the answers it was taught to give
    later = Node("distill", "gpu", "distilled-then-rl", 0, "rl", "stage")
    assert GRAPH.model_of(later) is None
    assert GRAPH.config(later)["template"] == traces["template"]


def test_the_student_has_room_for_what_it_learns_and_is_asked():
    positions = config("distill", "base-recipe", "sft")["args"]["model_init_kwargs"][
        "max_position_embeddings"
    ]
    asked = RECIPES["distill"].overlaid("gpu", "base-recipe", "evals")["tasks"]
    assert max(task["max_gen_toks"] for task in asked.values()) + 2048 <= positions
    # the base has 4,096, in which vLLM samples for arm zero-1.5b and for the base itself
    assert config("distill", "zero-1.5b", "rl")["args"]["max_completion_length"] + 1024 <= 4096
    assert asked["math500-base"]["max_gen_toks"] + 1024 <= 4096
