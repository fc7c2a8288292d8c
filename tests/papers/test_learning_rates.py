"""The grid has the learning rates that the record of the sweep found best, and the same objectives."""

from pathlib import Path

import pandas as pd
import pytest
from papers import GRAPH, RECIPES

from encore.recipe.graph import Node

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "results/published/learning_rates-cpu/numbers.csv.gz"
METRIC = "last_fifth/accuracy"  # of training rollouts, so that no held-out problem takes part in the choice


def stage(recipe: str, arm: str) -> dict:
    return GRAPH.config(Node(recipe, "cpu", arm, 0, "grpo", "stage"))


def but_its_rate(config: dict) -> dict:
    return config | {"args": config["args"] | {"learning_rate": None}}


@pytest.mark.parametrize("arm", RECIPES["objectives"].arms("cpu"))
def test_the_rate_is_the_sweeps_best_and_not_at_its_edge(arm):
    numbers = pd.read_csv(RECORD)
    numbers = numbers[(numbers.metric == METRIC) & (numbers.node == "grpo")].groupby("arm").value
    config = stage("objectives", arm)
    swept = {a: stage("learning_rates", a) for a in RECIPES["learning_rates"].arms("cpu")}
    same = {
        a: c["args"]["learning_rate"] for a, c in swept.items() if but_its_rate(c) == but_its_rate(config)
    }
    assert len(same) >= 3
    assert set(numbers.count()[list(same)]) == {RECIPES["learning_rates"].layers.content["seeds"]}
    best = same[numbers.mean()[list(same)].idxmax()]
    assert config["args"]["learning_rate"] == best
    assert min(same.values()) < best < max(same.values())


def test_the_sweeps_seeds_are_none_of_the_grids():
    seeds = {
        name: set(RECIPES[name].selection("cpu", "report", None)[1])
        for name in ("learning_rates", "objectives")
    }
    assert seeds["learning_rates"].isdisjoint(seeds["objectives"])
