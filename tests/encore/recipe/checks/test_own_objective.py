"""An objective of one's own in a recipe: an arm beside others, pinned by its source, or refused."""

import pytest

from analysis.training import loss_settings
from analysis.training.loss_settings import DASH
from encore.recipe.graph import Graph, Node

SOURCE = """
def loss(batch, args):
    return -(batch.logp * batch.advantage * batch.mask).sum() / batch.step_tokens
"""


@pytest.fixture
def mine(folder, tmp_path, monkeypatch):
    """The recipes, with an arm that has an objective of one's own; and its file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE)
    changes = {"objective": "mine:loss", "args": {"loss_type": None}}
    folder.set("paper", "arms/own", {"about": "its own loss", "stages": {"grpo": changes}})
    return folder, tmp_path / "mine.py"


def nodes(folder):
    graph = Graph(folder.load())
    every = {arm: Node("paper", "cpu", arm, 0, "grpo", "stage") for arm in ("base-recipe", "hot", "own")}
    return graph, every


def test_it_is_an_arm_of_the_grid_beside_the_others(mine):
    graph, arms = nodes(mine[0])
    assert {graph.owner(node) for node in arms.values()} == {*arms.values()}
    assert graph.inputs(arms["own"]) == graph.inputs(arms["base-recipe"])  # the same base model
    row = loss_settings.described(graph.stage(arms["own"]))
    assert (row["objective"], row["loss_type"], row["ratio"], row["clip range"]) == (
        "mine:loss",
        DASH,
        DASH,
        "none",
    )


def test_its_source_is_part_of_its_lineage_alone(mine):
    folder, file = mine
    graph, arms = nodes(folder)
    before = {arm: graph.lineage(node) for arm, node in arms.items()}
    assert graph.config(arms["own"])["code"].keys() == {"mine:loss"}
    file.write_text(SOURCE.replace("-(", "-2 * ("))
    graph, arms = nodes(folder)
    assert {arm for arm, node in arms.items() if graph.lineage(node) != before[arm]} == {"own"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"objective": "mine:los"},
            'objective: mine:los: nothing is called "los" in mine.py; did you mean "loss"?',
        ),
        ({"objective": "yours:loss"}, "objective: yours:loss: no file yours.py in "),
        (
            {"args": {"loss_type": "dapo"}},
            "args.loss_type: dapo, but the objective mine:loss replaces it",
        ),
        (
            {"importance_ratio": "none"},
            "importance_ratio: none, but the objective mine:loss replaces it",
        ),
        ({"objective": None}, "args.loss_type: missing"),
    ],
)
def test_what_contradicts_it_is_told(mine, change, says):
    folder, _ = mine
    changes = {"objective": "mine:loss", "args": {"loss_type": None}} | change
    folder.set("paper", "arms/own", {"about": "its own loss", "scales": ["cpu"], "stages": {"grpo": changes}})
    assert says in folder.mistake()
