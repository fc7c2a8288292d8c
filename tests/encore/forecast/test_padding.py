"""The positions that a plan counts for each token of a rollout."""

import numpy as np
import pytest
from papers import GRAPH

from encore.forecast import padding
from encore.forecast.hardware import Assumptions
from encore.forecast.job import Generation
from encore.forecast.time import scale_of
from encore.forecast.work import of_node
from encore.recipe.graph import Node

ROLLOUT = Generation(1, 1, 3000, 900, 120, "colocate")


@pytest.mark.parametrize(("together", "rows"), [(1, 1), (4, 4), (8, 8), (32, 32), (128, 4), (96, 32)])
def test_the_expectation_is_what_simulated_rollouts_take(together, rows):
    """The formula cuts the expected maximum at the cap, not each maximum: up to a tenth more."""
    rng, piece = np.random.default_rng(0), min(max(8, rows // 4), rows)
    lengths = np.minimum(rng.exponential(scale_of(900, 3000), (500, together)), 3000) + 120
    lengths = np.sort(lengths, axis=1)[:, ::-1]  # (rollouts, completions)
    widths = lengths[:, ::piece]
    simulated = (widths * piece).sum() / lengths.sum()
    assert padding.of_rows(ROLLOUT, together, rows) == pytest.approx(simulated, rel=0.12)


def test_a_stage_that_sorts_an_update_is_planned_with_hardly_any_padding():
    def of(recipe: str, name: str, arm: str = "base-recipe") -> float:
        job = of_node(GRAPH, Node(recipe, "gpu", arm, 0, name, "stage"), Assumptions())
        return job.training.padding

    assert 1 <= of("dr_grpo", "grpo") < 1.1
    assert 1 <= of("instructgpt", "ppo") < 1.1
    assert of("entropy", "grpo", "highest-fifth") > 1.1  # its tokens are chosen in a micro-batch
    assert of("dpo", "dpo") == 1
