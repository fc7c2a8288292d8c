"""Recipe `tldr` takes each learning rate from a sweep of three, of the same stage from the same inputs."""

import pytest
from papers import GRAPH, RECIPES

from encore.recipe.graph import Node

CHOSEN = [
    ("base-recipe", "reward_model"),
    ("large-reward-model", "reward_model"),
    ("base-recipe", "ppo"),
    ("base-recipe", "dpo"),
]


def rate_and_rest(recipe: str, arm: str, stage: str) -> tuple[float, dict]:
    """A stage's learning rate, and all else that shapes it: its settings, and what it starts from."""
    node = Node(recipe, "cpu", arm, 0, stage, "stage")
    own = GRAPH.config(node)
    upstream = {role: GRAPH.lineage(source) for role, source in GRAPH.needs(node).items()}
    return own["args"]["learning_rate"], own | {
        "args": own["args"] | {"learning_rate": None},
        "needs": upstream,
    }


@pytest.mark.parametrize(("arm", "stage"), CHOSEN)
def test_the_rate_is_the_middle_one_of_three_that_the_sweep_tries(arm, stage):
    chosen, rest = rate_and_rest("tldr", arm, stage)
    sweep = RECIPES["tldr_rates"]
    trials = [
        rate_and_rest("tldr_rates", swept, stage)
        for swept in sweep.arms("cpu")
        if stage in sweep.stages("cpu", swept)
    ]
    rates = {rate for rate, of in trials if of == rest}
    assert len(rates) == 3
    assert sorted(rates)[1] == chosen


def test_the_sweeps_seeds_are_none_that_are_judged():
    assert not {*RECIPES["tldr_rates"].selection("cpu", "report", None)[1]} & {
        *RECIPES["tldr"].selection("cpu", "report", 64)[1]
    }
