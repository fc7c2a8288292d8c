"""Laws of the graph, over small random recipes."""

import copy
import random
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recipes import graph
from recipes.graph import Node
from recipes.recipe import Recipe, load_all

ARMS = ("base-recipe", "a", "b")
ROOT = Path(__file__).parents[2]


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """A recipe of one to four stages in any order of need, with overlays of two arms and two scales."""
    names = [f"s{i}" for i in range(draw(st.integers(1, 4)))]
    values = st.integers(0, 2)
    stages = {}
    for i, name in enumerate(names):
        needed = draw(st.lists(st.sampled_from(names[:i]), max_size=2, unique=True)) if i else []
        stages[name] = {"run": "toy", "args": {"x": draw(values)}, "needs": {f"r{n}": n for n in needed}}
        if draw(st.booleans()):
            stages[name]["seed"] = draw(values)
    overlay = st.dictionaries(
        st.sampled_from(names), st.fixed_dictionaries({"args": st.fixed_dictionaries({"x": values})})
    )
    return {
        "stages": stages,
        "scales": {scale: {"stages": draw(overlay)} for scale in ("cpu", "gpu")},
        "arms": {arm: {"stages": draw(overlay)} for arm in ARMS},
        "evals": {
            "checkpoints": {f"c{n}": n for n in draw(st.lists(st.sampled_from(names), unique=True))},
            "tasks": {"t": {"k": [1]}, "only": {"k": [2], "checkpoints": ["cs0"]}},
        },
        "seeds": 2,
    }  # fmt: skip


def recipes_of(spec: dict[str, Any]) -> dict[str, Recipe]:
    return {"r": Recipe("r", spec)}


def nodes(spec: dict[str, Any], scale: str = "cpu") -> list[Node]:
    kinds = [("stage", name) for name in spec["stages"]] + [
        ("eval", name) for name in spec["evals"]["checkpoints"]
    ]
    return [
        Node("r", scale, arm, seed, name, kind) for arm in ARMS for seed in (0, 1) for kind, name in kinds
    ]


def lineages(spec: dict[str, Any], scale: str = "cpu") -> dict[Node, str]:
    recipes = recipes_of(spec)
    return {node: graph.lineage(recipes, node) for node in nodes(spec, scale)}


@given(specs())
def test_owner_is_the_first_arm_with_the_same_lineage(spec):
    recipes, known = recipes_of(spec), lineages(spec)
    for node in known:
        owner = graph.owner(recipes, node)
        assert graph.lineage(recipes, owner) == known[node]
        assert graph.owner(recipes, owner) == owner
        earlier = ARMS[: ARMS.index(owner.arm)]
        for arm in earlier:
            other = Node("r", "cpu", arm, owner.seed, node.name, node.kind)
            assert graph.lineage(recipes, other) != known[node]


@given(specs())
def test_grid_has_each_owner_once_and_upstream_first(spec):
    recipes = recipes_of(spec)
    grid = graph.grid(recipes, "r", "cpu", list(ARMS), [0, 1])
    assert len(grid) == len(set(grid))
    assert {graph.owner(recipes, node) for node in nodes(spec)} <= set(grid)
    for position, node in enumerate(grid):
        assert graph.owner(recipes, node) == node
        assert all(source in grid[:position] for source in graph.inputs(recipes, node).values())


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
    changed["arms"][arm]["stages"].setdefault(stage, {}).setdefault("args", {})["x"] = 99
    recipes = recipes_of(spec)

    def affected(node: Node) -> bool:
        return (node.kind == "stage" and node.name == stage) or any(
            affected(Node("r", "cpu", node.arm, node.seed, source.name, "stage"))
            for source in graph.inputs(recipes, node).values()
        )

    after = lineages(changed)
    for node, before in lineages(spec).items():
        assert (after[node] != before) == (node.arm == arm and affected(node))
    assert lineages(changed, "gpu") != lineages(spec, "gpu")  # an arm is laid over every scale


@settings(max_examples=20)
@given(specs())
def test_only_a_pinned_stage_is_one_for_all_seeds(spec):
    recipes = recipes_of(spec)
    for name, stage in spec["stages"].items():
        first, second = (Node("r", "cpu", "base-recipe", seed, name, "stage") for seed in (0, 1))
        same = graph.owner(recipes, first) == graph.owner(recipes, second)
        assert same == ("seed" in stage)


def test_merge_replaces_merges_and_deletes():
    base = {"a": 1, "b": {"c": 2, "d": [1, 2]}}
    assert graph.merge(base, {"b": {"c": None, "d": [3], "e": {"f": 4}}}) == {
        "a": 1,
        "b": {"d": [3], "e": {"f": 4}},
    }
    assert base == {"a": 1, "b": {"c": 2, "d": [1, 2]}}  # untouched


def test_precedence_stage_scale_arm(folder):
    folder.set("paper", "scales/cpu/stages", {"grpo": {"args": {"temperature": 0.7, "epsilon": 0.1}}})
    recipes = folder.load()
    args = graph.resolve(recipes, Node("paper", "cpu", "hot", 0, "grpo", "stage"))["args"]
    assert (args["beta"], args["epsilon"], args["temperature"]) == (0.001, 0.1, 1.2)


def test_what_a_scale_says_of_an_arm_is_for_that_scale_alone(folder):
    folder.set("paper", "scales/cpu/arms", {"hot": {"stages": {"grpo": {"args": {"temperature": 0.9}}}}})
    recipes = folder.load()
    other = next(scale for scale in recipes["paper"].spec["scales"] if scale != "cpu")
    found = {
        (scale, arm): graph.resolve(recipes, Node("paper", scale, arm, 0, "grpo", "stage"))["args"][
            "temperature"
        ]
        for scale in ("cpu", other)
        for arm in ("base-recipe", "hot")
    }
    assert (found["cpu", "hot"], found[other, "hot"]) == (0.9, 1.2)
    assert found["cpu", "base-recipe"] == found[other, "base-recipe"] == 1.0


def test_another_recipes_stage_by_arm_and_the_models_evaluation(folder):
    folder.set("paper", "arms/only-cpu/stages/grpo/needs", {"policy": "tiny/pretrain@other"})
    recipes = folder.load()
    base, other = (
        graph.inputs(recipes, Node("paper", "cpu", arm, 2, "grpo", "stage"))["policy"]
        for arm in ("hot", "only-cpu")
    )
    assert base == Node("tiny", "cpu", "base-recipe", 0, "pretrain", "stage")  # pinned to seed 0
    assert other.arm == "other"
    before = Node("paper", "cpu", "hot", 2, "before", "eval")
    assert graph.inputs(recipes, before) == {"model": base}
    assert graph.owner(recipes, before) == Node("paper", "cpu", "base-recipe", 0, "before", "eval")
    assert graph.sentinel(before) == "results/paper/cpu/hot/seed2/evals/before.json"
    assert list(graph.resolve(recipes, before)["tasks"]) == ["heldout"]


def test_what_is_known_of_a_recipe_follows_the_recipe_it_builds_on(folder):
    """A Recipe keeps what was computed once; beside another base model it has other lineages all the same."""
    recipes = folder.load()
    ends = [Node("paper", "cpu", "hot", 0, *end) for end in (("grpo", "stage"), ("before", "eval"))]
    before = [graph.lineage(recipes, node) for node in ends]
    for keys, value in (("stages/pretrain/args/max_steps", 9), ("stages/pretrain/seed", 1)):
        folder.set("tiny", keys, value)
        other = {**recipes, "tiny": folder.load()["tiny"]}
        after = [graph.lineage(other, node) for node in ends]
        assert after == [graph.lineage(folder.load(), node) for node in ends]
        assert not set(before) & set(after)
    assert [graph.lineage(recipes, node) for node in ends] == before


def test_a_hub_model_is_a_leaf(folder):
    recipes = folder.load()
    stage, before, after = (
        Node("paper", "paper", "base-recipe", 1, name, kind)
        for name, kind in (("grpo", "stage"), ("before", "eval"), ("after", "eval"))
    )
    model = {"hub": "org/name", "revision": "a" * 40}
    assert graph.model_of(recipes, stage) == graph.model_of(recipes, before) == model
    assert graph.inputs(recipes, stage) == graph.inputs(recipes, before) == {}
    assert graph.model_of(recipes, after) is None
    assert graph.owner(recipes, before).seed == 0  # one evaluation of a fixed model


def test_selection(folder):
    folder.set("paper", "quickstart", {"arms": ["base-recipe"], "seeds": 2})
    folder.set("paper", "scales/paper/seeds", 1)
    recipe = folder.load()["paper"]
    assert graph.selection(recipe, "cpu", "report", None) == (["base-recipe", "hot", "only-cpu"], [0, 1, 2])
    assert graph.selection(recipe, "cpu", "quickstart", None) == (["base-recipe"], [0, 1])
    assert graph.selection(recipe, "cpu", "quickstart", 3) == (["base-recipe"], [0, 1, 2])
    assert graph.selection(recipe, "paper", "report", None) == (["base-recipe", "hot"], [0])


def test_the_first_seed_moves_all_seeds_and_no_lineage(folder):
    seed1 = Node("paper", "cpu", "hot", 1, "grpo", "stage")
    known = graph.lineage(folder.load(), seed1)
    folder.set("paper", "first_seed", 1)
    recipes = folder.load()
    assert graph.selection(recipes["paper"], "cpu", "report", None)[1] == [1, 2, 3]
    assert graph.selection(recipes["paper"], "cpu", "quickstart", 2)[1] == [1, 2]
    assert graph.lineage(recipes, seed1) == known


def test_resources_shape_no_lineage(folder):
    node = Node("paper", "cpu", "hot", 0, "grpo", "stage")
    before = graph.lineage(folder.load(), node)
    folder.set("paper", "stages/grpo/resources", {"gpu": 8})
    recipes = folder.load()
    assert graph.lineage(recipes, node) == before
    assert graph.resources(recipes, Node("paper", "cpu", "hot", 0, "after", "eval")) == {"gpu": 8}
    folder.set("paper", "evals/resources", {"gpu": 1})
    recipes = folder.load()
    after = Node("paper", "cpu", "hot", 0, "after", "eval")
    assert graph.resources(recipes, node) == {"gpu": 8}
    assert graph.resources(recipes, after) == {"gpu": 1}
    assert "resources" not in graph.resolve(recipes, after)
    folder.set("paper", "stages/grpo/version", 2)
    assert graph.lineage(folder.load(), node) != before


def test_the_engine_of_evaluations_reaches_them():
    recipes = load_all(ROOT / "recipes")
    config = graph.resolve(recipes, Node("r1_zero", "paper", "base-recipe", 0, "after", "eval"))
    assert config["backend"] == "vllm"
    assert config["backend_args"]["tensor_parallel_size"] == 16
    assert "backend" not in graph.resolve(recipes, Node("r1_zero", "cpu", "base-recipe", 0, "after", "eval"))
