"""A graph as a record was made by, whatever the recipes pin by now."""

from dataclasses import replace

from encore.recipe.graph import Graph, Node
from encore.recipe.shared import Shared


def test_seeds_of_a_record_share_what_they_shared_when_it_was_made(folder):
    folder.remove("tiny", "stages/pretrain/seed")
    recipes = folder.load()
    base = Node("tiny", "cpu", "base-recipe", 7, "pretrain", "stage")
    for problems, owner in ((True, 7), (False, 2)):
        record = Graph(recipes, Shared({("tiny", "pretrain"): 7}, problems))
        before = Node("paper", "cpu", "hot", 2, "before", "eval")
        assert record.inputs(before) == {"model": base}
        assert record.owner(before) == Node("paper", "cpu", "base-recipe", owner, "before", "eval")
    assert Graph(recipes).inputs(before) == {"model": replace(base, seed=2)}
