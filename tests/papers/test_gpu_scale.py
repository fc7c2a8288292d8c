"""Scales on one GPU of 80 GB, or of 24 (`gpu-24gb`): every job fits on it; budgets are as the recipes say."""

import re
from typing import Any

import pytest
from papers import GRAPH, RECIPES, WITH_24_GB

from encore.forecast import plan
from encore.forecast.model_size import of_model
from encore.recipe.graph import Node

SWEEPS = (
    "learning_rates",
    "distill_rates",
    "dpo_rates",
    "dr_grpo_rates",
    "iterative_rates",
    "lora_rates",
    "ppo_or_grpo_rates",
    "r1_rates",
    "tldr_rates",
)  # of the dials of scale cpu
EXPECTED = {name: {"cpu", "gpu", "gpu-offline"} for name in RECIPES if name not in SWEEPS}
EXPECTED |= {
    name: {"cpu", "gpu-offline"}
    for name in (
        "tiny_lm",
        "policy_gradient",
        "ppo_or_grpo",
        "dials_of_grpo",
        "gdpo",
        "helpful_harmless",
        "staleness",
        "scaling",
        "multi_turn",
        "mismatch",
    )
}  # without a model of the Hub
EXPECTED |= {name: {"cpu"} for name in (*SWEEPS, "bandit")} | {"smoke": {"cpu", "gpu"}}
NOT_HERE = {"paper", "small", "small-gpu", "small-hub", "gpu-24gb", "1m", "8m"}
AT_ONCE = ("r1_zero", "smoke", "tldr")  # planned among the fast tests
ON_GPU = [
    pytest.param(name, scale, marks=() if name in AT_ONCE else pytest.mark.slow)
    for name, scales in EXPECTED.items()
    for scale in sorted(scales - {"cpu"})
]
ON_GPU += [pytest.param(name, "gpu-24gb", marks=pytest.mark.slow) for name in WITH_24_GB]
GPU_OF = {"gpu-24gb": "RTX4090"}  # an A100 otherwise
WORK = (
    "grpo",
    "ppo",
    "distillation",
    "sft",
    "dpo",
    "kto",
    "reward_model",
    "pretrain",
    "sample",
    "label_steps",
    "rejection_sampling",
    "policy_gradient",
)
OFFLINE_HOURS = 3  # gspo pretrains a mixture of experts for each of 16 seeds

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
    *(
        ("r1_zero", arm, "grpo", "entropy_coef", 0.001, "simpleRL-reason, train_grpo_math_tune_ray.sh")
        for arm in ("base-recipe", "qwen-1.5b")
    ),
]


def config(recipe: str, arm: str, stage: str) -> dict[str, Any]:
    return GRAPH.config(Node(recipe, "gpu", arm, 0, stage, "stage"))


def batch(args: dict[str, Any]) -> int:
    return args["per_device_train_batch_size"] * args["gradient_accumulation_steps"]


def test_the_recipes_that_have_them():
    assert {name: {*recipe.scales} - NOT_HERE for name, recipe in RECIPES.items()} == EXPECTED


@pytest.mark.parametrize(("recipe", "scale"), ON_GPU)
def test_every_job_has_one_gpu_and_fits_on_it_in_the_hours_that_are_said(recipe, scale):
    gpu = GPU_OF.get(scale, "A100")
    made = plan.make(GRAPH, {"recipe": recipe, "scale": scale, "gpus": f"1x{gpu}"})
    assert [row.estimate.lacks for row in made.rows if not row.estimate.fits] == []
    for row in made.rows:
        node = row.nodes[0]
        kind = "eval" if node.kind == "eval" else GRAPH.config(node)["run"]
        labelled = kind == "label_steps" and GRAPH.config(node)["by"] == "dataset"
        assert GRAPH.machine(node).gpus == 1 or labelled or kind not in (*WORK, "eval"), node
        if kind in WORK and kind not in ("sample", "label_steps", "rejection_sampling", "policy_gradient"):
            assert GRAPH.config(node)["args"]["bf16"] is True, node
    cost = RECIPES[recipe].layers.content["cost"][scale]
    said = re.match(rf"(\d+) (hours|minutes) on one {gpu}", cost)
    assert said, cost
    hours = int(said[1]) / (1 if said[2] == "hours" else 60)
    assert made.gpu_hours == pytest.approx(hours, rel=0.15)
    assert scale != "gpu-offline" or made.gpu_hours <= OFFLINE_HOURS


def test_the_smoke_test_takes_an_hour_on_an_h100():
    made = plan.make(GRAPH, {"recipe": "smoke", "scale": "gpu", "gpus": "1xH100"})
    assert 40 <= 60 * made.gpu_hours <= 60


def test_models_from_nothing_have_30_to_100_million_parameters():
    stages = [
        Node("tiny_lm", "gpu-offline", arm, 0, "pretrain", "stage")
        for arm in RECIPES["tiny_lm"].arms("gpu-offline")
    ]
    stages.append(Node("policy_gradient", "gpu-offline", "base-recipe", 0, "pretrain", "stage"))
    sizes = {plan.of_node(GRAPH, node, plan.Assumptions()).policy for node in stages}
    assert all(30e6 <= of_model(model).parameters <= 100e6 for model in sizes)


@pytest.mark.parametrize("recipe", [name for name, scales in EXPECTED.items() if "gpu-offline" in scales])
def test_offline_are_the_arms_and_claims_of_cpu(recipe):
    """But for what there is room for at gpu-offline alone, and for an arm that is null there."""
    of, alone = RECIPES[recipe], ["gpu-offline"]
    layers = of.layers.content["scales"]["gpu-offline"].get("arms", {})
    fewer = {arm for arm, layer in layers.items() if layer is None}
    assert fewer == ({"chat-small"} if recipe == "tiny_lm" else set())
    more = {arm for arm in of.arms("gpu-offline") if of.layers.content["arms"][arm].get("scales") == alone}
    assert [arm for arm in of.arms("gpu-offline") if arm not in more] == [
        arm for arm in of.arms("cpu") if arm not in fewer
    ]
    arms, seeds = of.selection("gpu-offline", "report", None)
    at_cpu, seeds_at_cpu = of.selection("cpu", "report", None)
    assert [arm for arm in arms if arm not in more] == [arm for arm in at_cpu if arm not in fewer]
    assert seeds == seeds_at_cpu
    claims = {
        scale: [claim.id for claim in of.claims(scale) if claim.scales != tuple(alone)]
        for scale in ("cpu", "gpu-offline")
    }
    assert claims["gpu-offline"] == claims["cpu"]
    for arm in of.arms("gpu-offline"):
        assert arm in more or of.stages("gpu-offline", arm) == of.stages("cpu", arm)
        assert not any(
            GRAPH.model_of(Node(recipe, "gpu-offline", arm, 0, name, "stage"))
            for name in of.stages("gpu-offline", arm)
        )


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
    asked = RECIPES["distill"].layers.merged("gpu", "base-recipe", "evals")["tasks"]
    assert max(task["max_gen_toks"] for task in asked.values()) + 2048 <= positions
    # the base has 4,096, in which vLLM samples for arm zero-1.5b and for the base itself
    assert config("distill", "zero-1.5b", "rl")["args"]["max_completion_length"] + 1024 <= 4096
    assert asked["math500-base"]["max_gen_toks"] + 1024 <= 4096


ABOUT = {name: one.layers.content["scales"].get("gpu", {}).get("about", "") for name, one in RECIPES.items()}
OF_OAT = [name for name, about in ABOUT.items() if "Oat-Zero" in about]


@pytest.mark.parametrize("recipe", OF_OAT)
def test_the_settings_of_oat_have_its_optimizer(recipe):
    """As recipes/dr_grpo/recipe.yaml has it at scale paper, where every number has its source."""
    oat = GRAPH.config(Node("dr_grpo", "paper", "base-recipe", 0, "grpo", "stage"))["args"]
    usual = {"adam_beta1": 0.9, "adam_beta2": 0.999, "max_grad_norm": 1.0}  # of transformers
    for arm in RECIPES[recipe].arms("gpu"):
        if "grpo" in RECIPES[recipe].stages("gpu", arm):
            args = config(recipe, arm, "grpo")["args"]
            for name, value in usual.items():
                assert args.get(name, value) == oat.get(name, value), (arm, name)


def test_ppo_of_one_model_has_the_rates_and_the_kl_that_are_known_to_work():
    """Pythia-1B by the N+ implementation, whose settings recipes/tldr/recipe.yaml has."""
    known = config("tldr", "base-recipe", "ppo")["args"]
    for arm in RECIPES["instructgpt"].arms("gpu"):
        args = config("instructgpt", arm, "ppo")["args"]
        for name in ("learning_rate", "critic_learning_rate", "kl_coef"):
            assert args[name] == known[name], (arm, name)
    nodes = [Node(recipe, "gpu", "base-recipe", 0, "sft", "stage") for recipe in ("tldr", "instructgpt")]
    models = [GRAPH.model_of(node) for node in nodes]
    assert models[0] == models[1]


HOW = ("temperature", "top_p", "max_gen_toks", "protocol")


def sampled(recipe: str, scale: str, place: str, metric: str) -> dict[str, Any]:
    """How the task of a metric is sampled at arm/checkpoint; empty where it is no metric of a task."""
    tasks = RECIPES[recipe].layers.merged(scale, place.partition("/")[0], "evals").get("tasks", {})
    task = tasks.get(metric.partition("/")[0].partition("@")[0])
    return {name: task.get(name) for name in HOW} if task else {}


@pytest.mark.parametrize("recipe", RECIPES)
def test_two_checkpoints_that_a_claim_compares_are_sampled_alike(recipe):
    """Else a gain may be the sampler's. How one checkpoint is sampled may be a claim's subject."""
    for claim in RECIPES[recipe].document.claims.values():
        of, against = claim.test.sides[0], claim.test.sides[-1]
        for scale in claim.scales or RECIPES[recipe].scales:
            if against.place != of.place and "frontier" not in (against.place + of.place):
                own, rival = (sampled(recipe, scale, *side) for side in (of, against))
                assert not own or not rival or own == rival, (scale, claim.id)
