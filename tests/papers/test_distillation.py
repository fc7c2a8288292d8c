"""The students of recipe `distill` have equal budgets, its arm of equal cost as many operations in all."""

import pytest
import torch
from papers import GRAPH, RECIPES
from transformers import Qwen3Config, Qwen3ForCausalLM

from encore import worlds
from encore.recipe.graph import Node
from encore.recipe.shape import Shape

STUDENTS = {"base-recipe": "sft", "self": "sft", "rl": "rl"}
METHODS = STUDENTS | {"distilled-then-rl": "rl"}


def config(arm: str, stage: str, recipe: str = "distill") -> dict:
    return GRAPH.config(Node(recipe, "cpu", arm, 0, stage, "stage"))


def responses(arm: str, stage: str) -> int:
    """That a student or a teacher learns from, each as often as it is learnt from."""
    args = config(arm, stage)["args"]
    return (
        args["max_steps"] * args["per_device_train_batch_size"] * args.get("gradient_accumulation_steps", 1)
    )


def parameters(arm: str) -> int:
    """Of a base model of tiny_lm."""
    spec = config(arm, "pretrain", "tiny_lm")
    words = worlds.tokenizer([worlds.make(spec["task"])])
    with torch.device("meta"):
        model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), **Shape(**spec["model"]).options()))
    return model.num_parameters()


def test_every_student_learns_from_as_many_responses_in_as_many_updates():
    budgets = {
        (responses(arm, stage), config(arm, stage)["args"]["max_steps"]) for arm, stage in STUDENTS.items()
    }
    assert len(budgets) == 1
    twice = 2 * responses("base-recipe", "sft")
    assert responses("distilled-longer", "sft") == twice
    assert responses("distilled-then-rl", "sft") + responses("distilled-then-rl", "rl") == twice


def test_the_arm_of_equal_cost_has_the_operations_of_the_teacher_its_traces_and_the_student():
    """As provenance.json counts them: 2 generation, 6 update, 2 old and 2 reference log-probabilities."""
    teacher, student = parameters("large"), parameters("base-recipe")
    args = config("base-recipe", "teacher")["args"]
    assert args["beta"]  # the reference's log-probabilities are computed
    assert args["steps_per_generation"] > 1  # and the old ones
    traces = config("base-recipe", "traces")
    sampled = traces["problems"] * traces["args"]["num_generations"]
    total = teacher * (12 * responses("base-recipe", "teacher") + 2 * sampled)
    total += student * 6 * responses("base-recipe", "sft")
    rollout = config("rl", "rl")["args"]["per_device_train_batch_size"] * args["steps_per_generation"]
    assert responses("rl-equal-cost", "rl") == total // (12 * student * rollout) * rollout


def but_its_rate(arm: str, stage: str, recipe: str) -> dict:
    """All that shapes a stage: its settings without the learning rate, and what it starts from."""
    own = config(arm, stage, recipe)
    sources = GRAPH.needs(Node(recipe, "cpu", arm, 0, stage, "stage"))
    upstream = {role: GRAPH.lineage(source) for role, source in sources.items()}
    return own | {"args": own["args"] | {"learning_rate": None}, "needs": upstream}


@pytest.mark.parametrize(("arm", "stage"), METHODS.items())
def test_the_rate_is_one_of_three_that_the_sweep_tried_and_not_at_its_edge(arm, stage):
    sweep = RECIPES["distill_rates"]
    rates = {
        config(swept, stage, sweep.name)["args"]["learning_rate"]
        for swept in sweep.arms("cpu")
        if stage in sweep.stages("cpu", swept)
        and but_its_rate(swept, stage, sweep.name) == but_its_rate(arm, stage, "distill")
    }
    assert len(rates) >= 3
    assert config(arm, stage)["args"]["learning_rate"] in rates - {min(rates), max(rates)}
