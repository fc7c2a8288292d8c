"""What the seeds of a record share, as its tables show it, whatever its recipe pins by now."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers import RECIPES

from analysis.arms import bases
from analysis.numbers import recorded
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
    pd.DataFrame(runs, columns=["stage", "seed"]).assign(arm="base-recipe").to_csv(path / "runs.csv.xz")
    numbers = [("before", seed) for seed in measured] + [("after", seed) for seed in SEEDS]
    pd.DataFrame(numbers, columns=["node", "seed"]).assign(arm="base-recipe").to_csv(path / "numbers.csv.xz")
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
    folder = record(tmp_path, bases_of, measured)
    graph = as_run(folder, GRAPH, pd.read_csv(folder / "numbers.csv.xz"))
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


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_a_number_of_a_record_has_six_digits_and_the_same_numbers_the_same_bytes(values):
    frame = pd.DataFrame({"seed": range(len(values)), "value": values})
    with TemporaryDirectory() as folder:
        file = Path(folder, "a.csv.xz")
        recorded.write(frame, file)
        first = file.read_bytes()
        recorded.write(frame, file)
        assert file.read_bytes() == first
        again = pd.read_csv(file)
    assert again.seed.tolist() == list(range(len(values)))
    assert again.value.tolist() == pytest.approx(values, rel=5e-6, abs=0)
