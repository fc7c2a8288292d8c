"""What samples on a GPU at scale paper says in what precision, so that all checkpoints are measured alike."""

import pytest
from papers import GRAPH, RECIPES

from encore.recipe.graph import Node


def sampled(recipe: str) -> list[Node]:
    spec = RECIPES[recipe]
    return [
        node
        for arm in spec.arms("paper")
        for kind, names in (
            ("stage", [n for n in spec.stages("paper", arm) if spec.stage("paper", arm, n).run in SAMPLING]),
            ("eval", spec.checkpoints("paper", arm)),
        )
        for node in (Node(recipe, "paper", arm, 0, name, kind) for name in names)
        if GRAPH.resources(node).gpu
    ]


SAMPLING = ("sample", "rejection_sampling")


@pytest.mark.parametrize("recipe", [name for name, spec in RECIPES.items() if "paper" in spec.scales])
def test_it_says_in_what(recipe):
    nodes = sampled(recipe)
    assert nodes or recipe == "policy_gradient"  # which has no GPU
    assert {GRAPH.config(node).get("dtype") for node in nodes} <= {"bfloat16"}
