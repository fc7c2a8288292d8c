"""What the comparisons of `overoptimization` and `iterative` rest on: arms that differ in one thing alone."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from papers import GRAPH, RECIPES

from encore.forecast import plan
from encore.recipe.claims import Claim
from encore.recipe.graph import Node

ROUNDS = (1, 2, 3)


def stage(recipe: str, arm: str, name: str) -> dict[str, Any]:
    return GRAPH.config(Node(recipe, "cpu", arm, 0, name, "stage"))


def claims(recipe: str) -> tuple[Claim, ...]:
    """The claims at scale cpu."""
    return RECIPES[recipe].claims("cpu")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    else:
        yield path, repr(value)


def apart(arm: str, name: str) -> set[str]:
    """The settings in which an arm's stage is not that of base-recipe."""
    own = {*leaves(stage("overoptimization", arm, name))}
    return {path for path, _ in own ^ {*leaves(stage("overoptimization", "base-recipe", name))}}


@pytest.mark.parametrize(
    ("arm", "proxy", "ppo"),
    [
        ("rm-large", {"args.learning_rate"}, set()),
        ("data-8x", {"problems"}, set()),
        ("data-few", {"problems"}, set()),
        ("kl-penalty", set(), {"args.kl_coef"}),
        ("ensemble-worst", {"members"}, {"ensemble"}),
        ("data-2x", {"problems"}, None),
        ("epochs-4", {"args.num_train_epochs"}, None),
        ("ensemble-mean", {"members"}, None),
    ],
)
def test_an_arm_differs_from_the_base_recipe_in_what_it_is_named_for(arm, proxy, ppo):
    assert apart(arm, "reward_model") == proxy
    if ppo is None:
        assert "ppo" not in RECIPES["overoptimization"].stages("cpu", arm)
    else:
        assert apart(arm, "ppo") == ppo


def test_proxies_learn_from_as_many_comparisons_as_their_arms_say():
    few, base, twice, eight = (
        stage("overoptimization", arm, "reward_model")["problems"]
        for arm in ("data-few", "base-recipe", "data-2x", "data-8x")
    )
    assert (few, twice, eight) == (base // 8, 2 * base, 8 * base)
    drawn, held_out = stage("overoptimization", "base-recipe", "sample"), 0.1
    assert eight <= drawn["problems"] * (1 - held_out) * 0.95  # some prompts have no pair
    pairs = drawn["args"]["num_generations"] * (drawn["args"]["num_generations"] - 1) // 2
    assert 1000 <= base * pairs <= 8000


def test_two_runs_of_ppo_are_compared_at_equal_kl_alone():
    compared = [
        one
        for one in claims("overoptimization")
        if (one.test.against or "").endswith("/ppo") and one.test.against != one.test.of
    ]
    assert len(compared) >= 5
    assert all(re.fullmatch(r"gold_at_kl/[\d.]+", one.test.metric) for one in compared)


def test_what_is_asked_of_8_nats_needs_a_run_that_gets_there():
    far = [one for one in claims("overoptimization") if one.test.metric == "gold_at_kl/8"]
    assert far
    assert all("goes_far >= 8" in map(str, one.needs) for one in far)


def test_ppo_in_rounds_is_held_to_the_kl_that_it_is_steered_to():
    held = RECIPES["iterative"].document.gates["holds_kl"]
    assert held.target == stage("iterative", "iterative-rl", "ppo_1")["args"]["kl_target"]
    assert (held.of, held.metric) == ("iterative-rl/ppo_1", "last_fifth/kl")


def test_no_two_rounds_and_no_exam_have_a_prompt_in_common():
    seen = []
    for name in (*(f"sample_{i}" for i in ROUNDS), "exam"):
        of = stage("iterative", "base-recipe", name)
        seen.append(range(of.get("skip", 0), of.get("skip", 0) + of["problems"]))
    assert all(one.stop <= other.start for one, other in pairwise(seen))


def test_replies_are_measured_as_they_are_drawn():
    """Fine-tuning on replies drawn colder than they are measured gains by being sharper alone."""
    tasks = RECIPES["iterative"].layers.merged("cpu", "base-recipe", "evals")["tasks"]
    drawn = stage("iterative", "base-recipe", "sample_1")["args"]
    for setting in ("temperature", "top_p"):
        assert tasks["heldout"][setting] == drawn[setting]


@pytest.mark.parametrize("scale", ["paper", "gpu"])
def test_the_policy_of_each_round_is_its_own_judge(scale):
    for i, policy in zip(ROUNDS, ("sft", "dpo_1", "dpo_2"), strict=True):
        node = Node("iterative", scale, "base-recipe", 0, f"label_{i}", "stage")
        assert GRAPH.config(node)["by"] == "language_model"
        assert GRAPH.needs(node)["policy"].name == policy
        reads, trained = (
            plan.of_node(GRAPH, of, plan.Assumptions()).policy for of in (node, GRAPH.inputs(node)["policy"])
        )
        assert reads == trained is not None


def test_dpo_and_fine_tuning_had_as_many_trials():
    (sweep,) = [one for one in RECIPES["iterative"].document.dials if one.sweep == "iterative_rates"]
    assert sweep.trials == {"gold": 4, "positive-only-gold": 4}
    arms = RECIPES["iterative_rates"].arms("cpu")
    settings = [
        (of["args"]["beta"], of["args"]["learning_rate"])
        for arm in arms
        for name in RECIPES["iterative_rates"].stages("cpu", arm)
        if name == "dpo_1" and (of := stage("iterative_rates", arm, name))
    ]
    assert len({*settings}) == 4
    taken = stage("iterative", "gold", "dpo_1")["args"]
    assert (taken["beta"], taken["learning_rate"]) in settings
