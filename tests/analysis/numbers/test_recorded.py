"""What the seeds of a record share, as its tables show it, whatever its recipe pins by now."""

import pandas as pd
import pytest
from papers import RECIPES

from analysis.arms import bases
from analysis.numbers.recorded import as_run
from analysis.numbers.run import Run
from encore.recipe.graph import Graph, Node
from encore.recipe.shared import Shared

GRAPH = Graph(RECIPES)
SEEDS = range(1, 9)
PRETRAIN = ("tiny_lm", "pretrain")


def record(folder, bases_of, measured):
    """A record of r1_zero whose base models, and evaluations of them, have these seeds."""
    path = folder / "r1_zero-cpu"
    path.mkdir()
    runs = [("tiny_lm/pretrain", seed) for seed in bases_of] + [("grpo", seed) for seed in SEEDS]
    pd.DataFrame(runs, columns=["stage", "seed"]).assign(arm="base-recipe").to_csv(path / "runs.csv")
    numbers = [("before", seed) for seed in measured] + [("after", seed) for seed in SEEDS]
    pd.DataFrame(numbers, columns=["node", "seed"]).assign(arm="base-recipe").to_csv(path / "numbers.csv")
    return path


@pytest.mark.parametrize(
    ("bases_of", "measured", "shared"),
    [
        ([0], [1], Shared({PRETRAIN: 0}, problems=True)),  # as all were before seeds had a base of their own
        ([0], SEEDS, Shared({PRETRAIN: 0}, problems=False)),  # pinned, and asked other problems by each seed
        (SEEDS, SEEDS, Shared({}, problems=False)),
    ],
)
def test_seeds_share_what_the_tables_have_of_one_seed_alone(tmp_path, bases_of, measured, shared):
    graph = as_run(record(tmp_path, bases_of, measured), GRAPH)
    assert graph.shared == shared
    policies = {
        graph.inputs(Node("r1_zero", "cpu", "base-recipe", seed, "grpo", "stage"))["policy"].seed
        for seed in SEEDS
    }
    assert policies == set(bases_of)
    run = Run(graph, "r1_zero", "cpu", ("base-recipe",), tuple(SEEDS))
    assert bool(bases.one_base(run)) == (len(bases_of) == 1)
    assert {run.graph.owner(run.evaluation("random", "before", seed)).seed for seed in SEEDS} == (
        {0} if shared.problems else set(SEEDS)
    )
