"""Scale `gpu` on a CPU: two steps of every stage and a few items of every evaluation, with tiny models.

They are fetched by the real clients from a Hub on the loopback, by the names and revisions of the recipes.
"""

import json
from pathlib import Path

import pytest
import stand_in_recipes
from forked_jobs import forked
from papers import OFFLINE, RECIPES, WITH_24_GB, WITH_GPU
from stand_in_recipes import MACHINE, half_are_right
from stocked_hub import stocked

from encore.forecast import stand_ins, trial
from encore.recipe.graph import Graph, Node


@pytest.fixture(scope="module", autouse=True)
def hub(tmp_path_factory):
    with stocked(tmp_path_factory.mktemp("hub")) as served:
        yield served


def stage(graph: Graph, node: Node, inputs: dict[str, Path], place: tuple[str, Path]) -> Path:
    """The metrics.json of a stage, or of what stands in for data that two steps leave empty."""
    config = graph.config(node)
    trap = half_are_right if "dynamic_sampling" in config else None
    done = trial.run_stage(config, inputs, 0, MACHINE, place, forked(trap))
    if not done.failure:
        if "steps" in (spent := done.content("provenance.json")) and "max_steps" in config.get("args", {}):
            assert spent["steps"] == 2 * config.get("members", 1), node
        return done.out
    assert stand_ins.emptied(config["run"], done.failure), f"{node}: {done.failure}"
    data = stand_ins.of_stage(config, inputs, done.out.parent)
    assert data, node
    return data


def evaluation(graph: Graph, node: Node, inputs: dict[str, Path], place: tuple[str, Path]) -> Path:
    leaf = graph.model_of(node)
    model = str(inputs.pop("model", f"hub:{leaf.model_dump_json()}" if leaf else ""))
    done = trial.run_evaluation(graph.config(node) | {"seed": 0}, model, inputs, 0, place, forked())
    assert not done.failure, f"{node}: {done.failure}"
    assert done.content()["tasks"], node
    return done.out


def try_all(graph: Graph, recipe: str, scale: str, folder: Path) -> None:
    """Every stage of every arm, and every evaluation that differs from those before it."""
    nodes = graph.grid(recipe, scale, RECIPES[recipe].arms(scale), [0])
    made: dict[Node, Path] = {}
    tried: dict[str, Path] = {}
    for number, node in enumerate(nodes):
        inputs = {role: made[source] for role, source in graph.inputs(node).items()}
        place = (node.name, folder / f"{number}-{node.arm}-{node.name}")
        if node.kind == "stage":
            made[node] = stage(graph, node, inputs, place)
            continue
        alike = json.dumps([graph.config(node), repr(graph.model_of(node)), [*inputs]], sort_keys=True)
        if alike not in tried:
            tried[alike] = evaluation(graph, node, inputs, place)
    assert made
    assert tried


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "scale"),
    [*((name, "gpu") for name in WITH_GPU), *((name, "gpu-24gb") for name in WITH_24_GB), ("r1_zero", "small-hub")],
)
def test_two_steps_of_every_stage(recipe, scale, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = stand_in_recipes.only(RECIPES[recipe], scale)
    try_all(stand_in_recipes.graph([own]), recipe, scale, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", OFFLINE)
def test_two_steps_offline(recipe, tmp_path, monkeypatch):
    """In bfloat16, from models that are made here; what every stage kind of these recipes has."""
    monkeypatch.chdir(tmp_path)
    every = [stand_in_recipes.only(RECIPES[name], "gpu-offline") for name in (recipe, "tiny_lm")]
    try_all(stand_in_recipes.graph(every), recipe, "gpu-offline", tmp_path)
