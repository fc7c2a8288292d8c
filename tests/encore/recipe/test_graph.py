"""Laws of the graph, over small random recipes."""

import copy
import random
from dataclasses import replace
from typing import Any

import pytest
from data_set_files import DATA
from hypothesis import given, settings
from hypothesis import strategies as st
from papers import GRAPH

from encore.recipe.graph import Graph, Node
from encore.recipe.layers import Layers, merge
from encore.recipe.machine import HubModel, Resources
from encore.recipe.recipe import Recipe

ARMS = ("base-recipe", "a", "b")


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """A recipe of one to four stages in any order of need, with overlays of two arms and two scales."""
    names = [f"s{i}" for i in range(draw(st.integers(1, 4)))]
    values, steps = st.integers(0, 2), st.integers(1, 3)
    stages = {}
    for i, name in enumerate(names):
        needed = draw(st.lists(st.sampled_from(names[:i]), max_size=2, unique=True)) if i else []
        needs = dict(zip(("policy", "reference"), needed, strict=False))
        stages[name] = {"run": "dpo", "args": {"max_steps": draw(steps)}, "needs": needs}
        if draw(st.booleans()):
            stages[name]["seed"] = draw(values)
    overlay = st.dictionaries(
        st.sampled_from(names), st.fixed_dictionaries({"args": st.fixed_dictionaries({"max_steps": steps})})
    )
    return {
        "schema": 2,
        "title": "A recipe",
        "url": "https://example.org",
        "stages": stages,
        "scales": {scale: {"stages": draw(overlay)} for scale in ("cpu", "gpu")},
        "arms": {arm: {"stages": draw(overlay)} for arm in ARMS},
        "evals": {
            "checkpoints": {f"c{n}": n for n in draw(st.lists(st.sampled_from(names), unique=True))},
            "tasks": {"t": {"k": [1]}, "only": {"k": [2], "checkpoints": ["cs0"]}},
        },
        "seeds": 2,
    }  # fmt: skip


def graph_of(spec: dict[str, Any]) -> Graph:
    return Graph({"r": Recipe("r", Layers(spec))})


def nodes(spec: dict[str, Any], scale: str = "cpu") -> list[Node]:
    kinds = [("stage", name) for name in spec["stages"]] + [
        ("eval", name) for name in spec["evals"]["checkpoints"]
    ]
    return [
        Node("r", scale, arm, seed, name, kind) for arm in ARMS for seed in (0, 1) for kind, name in kinds
    ]


def lineages(spec: dict[str, Any], scale: str = "cpu") -> dict[Node, str]:
    graph = graph_of(spec)
    return {node: graph.lineage(node) for node in nodes(spec, scale)}


@given(specs())
def test_owner_is_the_first_arm_with_the_same_lineage(spec):
    graph, known = graph_of(spec), lineages(spec)
    for node in known:
        owner = graph.owner(node)
        assert graph.lineage(owner) == known[node]
        assert graph.owner(owner) == owner
        earlier = ARMS[: ARMS.index(owner.arm)]
        for arm in earlier:
            other = Node("r", "cpu", arm, owner.seed, node.name, node.kind)
            assert graph.lineage(other) != known[node]


@given(specs())
def test_grid_has_each_owner_once_and_upstream_first(spec):
    graph = graph_of(spec)
    grid = graph.grid("r", "cpu", list(ARMS), [0, 1])
    assert len(grid) == len(set(grid))
    assert {graph.owner(node) for node in nodes(spec)} <= set(grid)
    for position, node in enumerate(grid):
        assert graph.owner(node) == node
        assert all(source in grid[:position] for source in graph.inputs(node).values())


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same mapping written in another order."""
    if not isinstance(value, dict):
        return value
    keys = list(value)
    rng.shuffle(keys)
    return {key: shuffled(value[key], rng) for key in keys}


@given(specs(), st.randoms(use_true_random=False))
def test_order_of_keys_changes_no_lineage(spec, rng):
    assert lineages(spec) == lineages(shuffled(spec, rng))


@given(specs(), st.sampled_from(ARMS), st.data())
def test_an_arms_value_changes_that_arms_affected_nodes_alone(spec, arm, data):
    stage = data.draw(st.sampled_from(list(spec["stages"])))
    changed = copy.deepcopy(spec)
    changed["arms"][arm]["stages"].setdefault(stage, {}).setdefault("args", {})["max_steps"] = 99
    graph = graph_of(spec)

    def affected(node: Node) -> bool:
        return (node.kind == "stage" and node.name == stage) or any(
            affected(Node("r", "cpu", node.arm, node.seed, source.name, "stage"))
            for source in graph.inputs(node).values()
        )

    after = lineages(changed)
    for node, before in lineages(spec).items():
        assert (after[node] != before) == (node.arm == arm and affected(node))
    assert lineages(changed, "gpu") != lineages(spec, "gpu")  # an arm is laid over every scale


@settings(max_examples=20)
@given(specs())
def test_only_a_pinned_stage_is_one_for_all_seeds(spec):
    graph = graph_of(spec)
    for name, stage in spec["stages"].items():
        first, second = (Node("r", "cpu", "base-recipe", seed, name, "stage") for seed in (0, 1))
        same = graph.owner(first) == graph.owner(second)
        assert same == ("seed" in stage)


def test_merge_replaces_merges_and_deletes():
    base = {"a": 1, "b": {"c": 2, "d": [1, 2]}}
    assert merge(base, {"b": {"c": None, "d": [3], "e": {"f": 4}}}) == {
        "a": 1,
        "b": {"d": [3], "e": {"f": 4}},
    }
    assert base == {"a": 1, "b": {"c": 2, "d": [1, 2]}}  # untouched


def test_precedence_stage_scale_arm(folder):
    folder.set("paper", "scales/cpu/stages", {"grpo": {"args": {"temperature": 0.7, "epsilon": 0.1}}})
    recipes = folder.load()
    graph = Graph(recipes)
    args = graph.config(Node("paper", "cpu", "hot", 0, "grpo", "stage"))["args"]
    assert (args["beta"], args["epsilon"], args["temperature"]) == (0.001, 0.1, 1.2)


def test_what_a_scale_says_of_an_arm_is_for_that_scale_alone(folder):
    folder.set("paper", "scales/cpu/arms", {"hot": {"stages": {"grpo": {"args": {"temperature": 0.9}}}}})
    recipes = folder.load()
    graph = Graph(recipes)
    other = next(scale for scale in recipes["paper"].scales if scale != "cpu")
    found = {
        (scale, arm): graph.config(Node("paper", scale, arm, 0, "grpo", "stage"))["args"]["temperature"]
        for scale in ("cpu", other)
        for arm in ("base-recipe", "hot")
    }
    assert (found["cpu", "hot"], found[other, "hot"]) == (0.9, 1.2)
    assert found["cpu", "base-recipe"] == found[other, "base-recipe"] == 1.0


def test_another_recipes_stage_by_arm_and_the_models_evaluation(folder):
    folder.set("paper", "arms/only-cpu/stages/grpo/needs", {"policy": "tiny/pretrain@other"})
    recipes = folder.load()
    graph = Graph(recipes)
    base, other = (
        graph.inputs(Node("paper", "cpu", arm, 2, "grpo", "stage"))["policy"] for arm in ("hot", "only-cpu")
    )
    assert base == Node("tiny", "cpu", "base-recipe", 0, "pretrain", "stage")  # pinned to seed 0
    assert other.arm == "other"
    before = Node("paper", "cpu", "hot", 2, "before", "eval")
    assert graph.inputs(before) == {"model": base}
    assert graph.owner(before) == Node("paper", "cpu", "base-recipe", 2, "before", "eval")  # its problems
    assert before.sentinel == "results/paper/cpu/hot/seed2/evals/before.json"
    assert list(graph.config(before)["tasks"]) == ["heldout"]


def test_what_is_known_of_a_recipe_follows_the_recipe_it_builds_on(folder):
    """A Recipe keeps what was computed once; beside another base model it has other lineages all the same."""
    recipes = folder.load()
    graph = Graph(recipes)
    ends = [Node("paper", "cpu", "hot", 0, *end) for end in (("grpo", "stage"), ("before", "eval"))]
    before = [graph.lineage(node) for node in ends]
    for keys, value in (("stages/pretrain/args/max_steps", 9), ("stages/pretrain/seed", 1)):
        folder.set("tiny", keys, value)
        other = {**recipes, "tiny": folder.load()["tiny"]}
        after = [Graph(other).lineage(node) for node in ends]
        assert after == [Graph(folder.load()).lineage(node) for node in ends]
        assert not set(before) & set(after)
    assert [graph.lineage(node) for node in ends] == before


def test_a_hub_model_is_a_leaf(folder):
    recipes = folder.load()
    graph = Graph(recipes)
    stage, before, after = (
        Node("paper", "paper", "base-recipe", 1, name, kind)
        for name, kind in (("grpo", "stage"), ("before", "eval"), ("after", "eval"))
    )
    model = HubModel(hub="org/name", revision="a" * 40)
    assert graph.model_of(stage) == graph.model_of(before) == model
    assert graph.inputs(stage) == graph.inputs(before) == {}
    assert graph.model_of(after) is None
    assert [graph.owner(replace(before, seed=seed)).seed for seed in (0, 1)] == [0, 1]  # its problems
    folder.set("paper", "evals/tasks/heldout/task", DATA)
    fixed = Graph(folder.load())
    assert [fixed.owner(replace(before, seed=seed)).seed for seed in (0, 1)] == [0, 0]  # the same for all


def test_a_base_model_follows_the_seed_and_arms_of_one_seed_are_asked_the_same(folder):
    folder.remove("tiny", "stages/pretrain/seed")
    graph = Graph(folder.load())
    for arm in ("base-recipe", "hot"):
        policies = [
            graph.inputs(Node("paper", "cpu", arm, seed, "grpo", "stage"))["policy"] for seed in (0, 1)
        ]
        assert policies == [Node("tiny", "cpu", "base-recipe", seed, "pretrain", "stage") for seed in (0, 1)]
        before = [graph.owner(Node("paper", "cpu", arm, seed, "before", "eval")) for seed in (0, 1)]
        assert before == [Node("paper", "cpu", "base-recipe", seed, "before", "eval") for seed in (0, 1)]


def test_selection(folder):
    folder.set("paper", "quickstart", {"arms": ["base-recipe"], "seeds": 2})
    folder.set("paper", "scales/paper/seeds", 1)
    recipe = folder.load()["paper"]
    assert recipe.selection("cpu", "report", None) == (["base-recipe", "hot", "only-cpu"], [0, 1, 2])
    assert recipe.selection("cpu", "quickstart", None) == (["base-recipe"], [0, 1])
    assert recipe.selection("cpu", "quickstart", 3) == (["base-recipe"], [0, 1, 2])
    assert recipe.selection("paper", "report", None) == (["base-recipe", "hot"], [0])


def test_the_first_seed_moves_all_seeds_and_no_lineage(folder):
    seed1 = Node("paper", "cpu", "hot", 1, "grpo", "stage")
    known = Graph(folder.load()).lineage(seed1)
    folder.set("paper", "first_seed", 1)
    recipes = folder.load()
    graph = Graph(recipes)
    assert recipes["paper"].selection("cpu", "report", None)[1] == [1, 2, 3]
    assert recipes["paper"].selection("cpu", "quickstart", 2)[1] == [1, 2]
    assert graph.lineage(seed1) == known


def test_resources_shape_no_lineage(folder):
    node = Node("paper", "cpu", "hot", 0, "grpo", "stage")
    before = Graph(folder.load()).lineage(node)
    folder.set("paper", "stages/grpo/resources", {"gpu": 1})
    recipes = folder.load()
    graph = Graph(recipes)
    assert graph.lineage(node) == before
    assert graph.resources(Node("paper", "cpu", "hot", 0, "after", "eval")) == Resources(gpu=1)
    folder.set("paper", "evals/resources", {"gpu": 2})
    recipes = folder.load()
    graph = Graph(recipes)
    after = Node("paper", "cpu", "hot", 0, "after", "eval")
    assert graph.resources(node) == Resources(gpu=1)
    assert graph.resources(after) == Resources(gpu=2)
    assert "resources" not in graph.config(after)
    folder.set("paper", "stages/grpo/version", 2)
    assert Graph(folder.load()).lineage(node) != before


def test_the_engine_of_evaluations_reaches_them():
    config = GRAPH.config(Node("r1_zero", "paper", "base-recipe", 0, "after", "eval"))
    assert config["backend"] == "vllm"
    assert config["backend_args"]["tensor_parallel_size"] == 8
    assert GRAPH.config(Node("r1_zero", "cpu", "base-recipe", 0, "after", "eval"))["backend"] == "lean"
    assert "backend" not in GRAPH.config(Node("tiny_lm", "cpu", "base-recipe", 0, "base", "eval"))


@pytest.mark.parametrize(
    ("node", "lineage"),
    [
        (
            Node("r1_zero", "cpu", "base-recipe", 0, "grpo", "stage"),
            "3f9b4f60b30e61ba7752f8dad4edfb685026193d39c9224b7b8459653f44b4c1",
        ),
        (
            Node("instructgpt", "cpu", "base-recipe", 1, "ppo", "stage"),
            "ff184b5213f702652d859ff7bc88116d7ea6574736fdeaf79242a84deedff1bf",
        ),
        (
            Node("deepseekmath", "cpu", "base-recipe", 1, "after", "eval"),
            "a46c2a0da3db6b773b029d3db1749f0359e919c177c3574790444b03182ef879",
        ),
    ],
)
def test_lineages_of_finished_results(node, lineage):
    """A change of code must not make finished results stale; where a recipe changes, change these too."""
    assert GRAPH.lineage(node) == lineage
