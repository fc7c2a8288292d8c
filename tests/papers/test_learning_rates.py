"""A recipe has the learning rates that the record of its sweep found best, and the methods of the sweep."""

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from papers import GRAPH, RECIPES

RECORDS = Path(__file__).parents[2] / "results/published"
METRIC = "last_fifth/accuracy"  # of training rollouts, so that no held-out problem takes part in the choice
SWEEPS = {"objectives": "learning_rates", "ppo_or_grpo": "ppo_or_grpo_rates"}
# arms that ask what too high a rate does: how many times the best one they have, and of which arm's
FAST = {"grpo-fast": (4, "base-recipe"), "ppo-fast": (4, "ppo")}
ARMS = [(recipe, arm) for recipe in SWEEPS for arm in RECIPES[recipe].arms("cpu") if arm not in FAST]


@cache
def learning(recipe: str, arm: str) -> dict[str, Any]:
    """Return the configuration of the stage that learns by reinforcement."""
    nodes = GRAPH.grid(recipe, "cpu", [arm], RECIPES[recipe].selection("cpu", "report", None)[1][:1])
    (node,) = [node for node in nodes if node.recipe == recipe and node.name in ("grpo", "ppo")]
    return GRAPH.config(node)


def rate(config: dict[str, Any]) -> float:
    return config["args"]["learning_rate"]


def but_its_rate(config: dict[str, Any]) -> dict[str, Any]:
    return config | {"args": config["args"] | {"learning_rate": None}}


@pytest.mark.parametrize(("recipe", "arm"), ARMS)
def test_the_rate_is_the_sweeps_best_and_not_at_its_edge(recipe, arm):
    sweep = SWEEPS[recipe]
    numbers = pd.read_csv(RECORDS / f"{sweep}-cpu/numbers.csv.xz")
    numbers = numbers[numbers.metric == METRIC].groupby("arm").value
    config = learning(recipe, arm)
    swept = {other: learning(sweep, other) for other in RECIPES[sweep].arms("cpu")}
    same = {
        other: rate(tried) for other, tried in swept.items() if but_its_rate(tried) == but_its_rate(config)
    }
    assert len(same) >= 3
    assert set(numbers.count()[list(same)]) == {RECIPES[sweep].layers.content["seeds"]}
    best = same[numbers.mean()[list(same)].idxmax()]
    assert rate(config) == best
    assert min(same.values()) < best < max(same.values())


@pytest.mark.parametrize(("arm", "times", "of"), [(arm, *how) for arm, how in FAST.items()])
def test_a_fast_arm_differs_from_its_method_in_the_rate_alone(arm, times, of):
    fast, method = learning("ppo_or_grpo", arm), learning("ppo_or_grpo", of)
    assert but_its_rate(fast) == but_its_rate(method)
    assert rate(fast) == pytest.approx(times * rate(method))


@pytest.mark.parametrize("recipe", SWEEPS)
def test_the_sweeps_seeds_are_none_of_those_that_are_compared(recipe):
    compared, swept = (
        {*RECIPES[name].selection("cpu", "report", None)[1]} for name in (recipe, SWEEPS[recipe])
    )
    assert compared.isdisjoint(swept)
