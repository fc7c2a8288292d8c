"""The grid has the learning rates that the record of the sweep found best, and the same objectives."""

from pathlib import Path

import pandas as pd
import pytest

from recipes import graph
from recipes.recipe import load_all

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "results/published/learning_rates-cpu/numbers.csv"
METRIC = "last_fifth/accuracy"  # of training rollouts, so that no held-out problem takes part in the choice
# what may differ between the sweep and the grid: the rate, and how completions are sampled
FREE = {"sampler"}
# there is no warm-up under schedule constant
FREE_ARGS = {"learning_rate", "cache_implementation", "warmup_steps"}

RECIPES = load_all(ROOT / "recipes")


def stage(recipe: str, arm: str) -> dict:
    return graph.resolve(RECIPES, graph.Node(recipe, "cpu", arm, 0, "grpo", "stage"))


def objective(config: dict) -> str:
    args = {name: value for name, value in config["args"].items() if name not in FREE_ARGS}
    return repr(sorted(({k: v for k, v in config.items() if k not in FREE} | {"args": args}).items()))


def sweep_of(arm: str) -> dict[float, str]:
    """Learning rate -> the sweep's arm, for the objective of an arm of the grid."""
    wanted = objective(stage("objectives", arm))
    arms = {a: stage("learning_rates", a) for a in RECIPES["learning_rates"].arms("cpu")}
    return {c["args"]["learning_rate"]: a for a, c in arms.items() if objective(c) == wanted}


@pytest.mark.parametrize("arm", RECIPES["objectives"].arms("cpu"))
def test_the_rate_is_the_sweeps_best_and_not_at_its_edge(arm):
    numbers = pd.read_csv(RECORD)
    numbers = numbers[(numbers.metric == METRIC) & (numbers.node == "grpo")].groupby("arm").value.mean()
    found = {rate: numbers[name] for rate, name in sweep_of(arm).items()}
    assert len(found) >= 3
    best = max(found, key=lambda rate: found[rate])
    assert stage("objectives", arm)["args"]["learning_rate"] == best
    assert min(found) < best < max(found)


def seeds(recipe: str) -> set[int]:
    """Those that its RL stages are trained with."""
    arms, selected = graph.selection(RECIPES[recipe], "cpu", "report", None)
    nodes = [graph.Node(recipe, "cpu", arm, seed, "grpo", "stage") for arm in arms for seed in selected]
    return {graph.owner(RECIPES, node).seed for node in nodes}


def test_the_sweeps_seeds_are_none_of_the_grids():
    assert seeds("learning_rates").isdisjoint(seeds("objectives"))
