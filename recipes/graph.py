"""The graph a recipe spans: which nodes there are, what each needs, who owns it.  Pure functions.

A node is one training stage or one evaluated checkpoint, of one arm and seed.  Its lineage is a hash of all
that shaped it, so arms whose nodes have the same lineage share one: the first of them owns it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from evals.config import ROLES
from recipes.errors import UserError

if TYPE_CHECKING:
    from recipes.recipe import Recipe

Found = TypeVar("Found")
REPORTS = ("report", "quickstart")  # of all that was asked for; of the recipe's quickstart alone
# Of the stage, but not of what it computes: the graph itself, the lineage's own seed, and the machine.
_NOT_CONFIG = ("needs", "seed", "resources")
_NOT_EVALS_CONFIG = ("checkpoints", "models", "tasks", "resources")


@dataclass(frozen=True, order=True)
class Node:
    recipe: str
    scale: str
    arm: str
    seed: int
    name: str  # stage, or checkpoint name
    kind: str  # "stage" | "eval"


def merge(base: dict, over: Mapping) -> dict:
    """`base` with `over` laid on it: dicts merge, everything else replaces, null deletes."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def overlaid(recipe: "Recipe", scale: str, arm: str, section: str) -> dict:
    """A section (`stages` or `evals`) of the recipe as the arm has it at the scale.

    stage < scale < arm < what the scale says of the arm.
    """
    key = (scale, arm, section)
    if key not in recipe.known:
        merged, at = recipe.spec[section], recipe.spec["scales"][scale]
        for layer in (at, recipe.spec["arms"][arm], at.get("arms", {}).get(arm, {})):
            merged = merge(merged, layer.get(section, {}))
        recipe.known[key] = merged
    return recipe.known[key]


def resolve(recipes: Mapping[str, "Recipe"], node: Node) -> dict[str, Any]:
    """The full config of a node: the stage's dict without its needs, or a checkpoint's engine and tasks."""
    if node.kind == "stage":
        stage = _stage(recipes, node)
        return {"version": 1, "threads": 1} | {k: v for k, v in stage.items() if k not in _NOT_CONFIG}
    evals = overlaid(recipes[node.recipe], node.scale, node.arm, "evals")
    engine = {key: value for key, value in evals.items() if key not in _NOT_EVALS_CONFIG}
    return engine | {
        "tasks": {
            name: {key: value for key, value in task.items() if key != "checkpoints"}
            for name, task in evals.get("tasks", {}).items()
            if node.name in task.get("checkpoints", [node.name])
        }
    }


def resources(recipes: Mapping[str, "Recipe"], node: Node) -> dict[str, int]:
    """`gpu`, `mem_mb`, `runtime` asked of the scheduler; an evaluation by default asks as its stage."""
    if node.kind == "stage":
        return _stage(recipes, node).get("resources", {})
    own = overlaid(recipes[node.recipe], node.scale, node.arm, "evals").get("resources", {})
    return resources(recipes, _checkpoint(recipes, node)[0]) | own


def inputs(recipes: Mapping[str, "Recipe"], node: Node) -> dict[str, Node]:
    """role -> the owner of the node that plays it.

    An evaluation's roles are "model", what is evaluated, and those of `evals.models` that its tasks score by.
    """
    return {role: owner(recipes, source) for role, source in _sources(recipes, node).items()}


def model_of(recipes: Mapping[str, "Recipe"], node: Node) -> dict | None:
    """The model a node takes from the Hub (`{hub, revision}`) or a folder (`{path}`), if any."""
    stage = _stage(recipes, node if node.kind == "stage" else _checkpoint(recipes, node)[0])
    model = stage.get("model", {})
    leaf = "hub" in model or "path" in model
    if node.kind == "eval" and _checkpoint(recipes, node)[1] is None:
        return None  # the stage's own product
    return model if leaf else None


def remembered(function: Callable[..., Found]) -> Callable[..., Found]:
    """`function` of (recipes, node), asked once of each node of recipes that were loaded together."""

    @wraps(function)
    def asked(recipes: Mapping[str, "Recipe"], node: Node) -> Found:
        found = getattr(recipes, "found", {})  # see recipe.Recipes; a plain mapping may change
        key = (function.__name__, node)
        if key not in found:
            found[key] = function(recipes, node)
        return found[key]

    return asked


@remembered
def lineage(recipes: Mapping[str, "Recipe"], node: Node) -> str:
    """64 hex digits: a hash of the node's config and seed, and of the lineages of what it needs."""
    identity = {
        "kind": node.kind,
        "seed": _seed(recipes, node),
        "config": resolve(recipes, node),
        "model": model_of(recipes, node),
        "inputs": {role: lineage(recipes, source) for role, source in _sources(recipes, node).items()},
    }
    return sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@remembered
def owner(recipes: Mapping[str, "Recipe"], node: Node) -> Node:
    """The node that is computed in this one's stead: that of the first arm with the same lineage.

    A pinned stage, and the evaluation of its model, belong to the pinned seed.
    """
    own = lineage(recipes, node)
    seed = _seed(recipes, node)
    for arm in recipes[node.recipe].arms(node.scale):
        candidate = replace(node, arm=arm, seed=seed)
        if arm == node.arm or (_exists(recipes, candidate) and lineage(recipes, candidate) == own):
            return candidate
    raise UserError(f"recipes/{node.recipe}.yaml: arm {node.arm} does not exist at scale {node.scale}")


def selection(recipe: "Recipe", scale: str, report: str, seeds: int | None) -> tuple[list[str], list[int]]:
    """Arms and seeds of a report: all of them, or for `quickstart` those the recipe names.

    `seeds`: how many; None: as many as the recipe says. They count from the recipe's `first_seed`.
    """
    arms, first = recipe.arms(scale), recipe.spec.get("first_seed", 0)
    count = recipe.spec["scales"][scale].get("seeds", recipe.spec.get("seeds", 3))
    if report == "quickstart":
        quick = recipe.spec.get("quickstart", {})
        arms = [arm for arm in quick.get("arms", arms[:1]) if arm in arms]
        count = quick.get("seeds", count)
    return arms, list(range(first, first + (seeds or count)))


def stages(recipe: "Recipe", scale: str, arm: str) -> list[str]:
    return list(overlaid(recipe, scale, arm, "stages"))


def checkpoints(recipe: "Recipe", scale: str, arm: str) -> list[str]:
    """Names of the checkpoints the arm has evaluated at the scale."""
    return list(overlaid(recipe, scale, arm, "evals").get("checkpoints", {}))


def grid(
    recipes: Mapping[str, "Recipe"], recipe: str, scale: str, arms: list[str], seeds: list[int]
) -> list[Node]:
    """Every distinct owner node of these arms and seeds, with all it needs, upstream first."""
    nodes = []
    for arm in arms:
        for seed in seeds:
            for name in stages(recipes[recipe], scale, arm):
                nodes.append(owner(recipes, Node(recipe, scale, arm, seed, name, "stage")))
            for name in checkpoints(recipes[recipe], scale, arm):
                nodes.append(owner(recipes, Node(recipe, scale, arm, seed, name, "eval")))
    return with_upstream(recipes, nodes)


def with_upstream(recipes: Mapping[str, "Recipe"], nodes: Iterable[Node]) -> list[Node]:
    """These nodes and all they need, each once, upstream first."""
    ordered: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in ordered:
            for source in inputs(recipes, node).values():
                visit(source)
            ordered[node] = None

    for node in nodes:
        visit(node)
    return list(ordered)


def folder(node: Node) -> str:
    run = f"results/{node.recipe}/{node.scale}/{node.arm}/seed{node.seed}"
    return f"{run}/{node.name}" if node.kind == "stage" else f"{run}/evals"


def sentinel(node: Node) -> str:
    """The file whose presence says that the node is done."""
    return f"{folder(node)}/metrics.json" if node.kind == "stage" else f"{folder(node)}/{node.name}.json"


def reference(node: Node, text: str) -> tuple[str, str, str | None]:
    """(recipe, stage, arm or None) of a `needs` target: `stage`, `recipe/stage`, each perhaps with `@arm`."""
    place, _, arm = text.partition("@")
    recipe, _, stage = place.rpartition("/")
    return recipe or node.recipe, stage, arm or None


def _stage(recipes: Mapping[str, "Recipe"], node: Node) -> dict:
    return overlaid(recipes[node.recipe], node.scale, node.arm, "stages")[node.name]


def _exists(recipes: Mapping[str, "Recipe"], node: Node) -> bool:
    names = stages if node.kind == "stage" else checkpoints
    return node.name in names(recipes[node.recipe], node.scale, node.arm)


def needs(recipes: Mapping[str, "Recipe"], node: Node) -> dict[str, Node]:
    """role -> the node a stage names, not yet its owner.  What feeds a pinned stage has the pinned seed."""
    nodes = {}
    seed = _seed(recipes, node)
    for role, text in _stage(recipes, node).get("needs", {}).items():
        nodes[role] = replace(target(recipes, node, text), seed=seed)
    return nodes


def target(recipes: Mapping[str, "Recipe"], node: Node, text: str) -> Node:
    """The stage that `node` names by `text`, of the node's own seed and, where `text` says none, its arm."""
    recipe, stage, arm = reference(node, text)
    arm = arm or (node.arm if recipe == node.recipe else recipes[recipe].arms(node.scale)[0])
    return Node(recipe, node.scale, arm, node.seed, stage, "stage")


def _checkpoint(recipes: Mapping[str, "Recipe"], node: Node) -> tuple[Node, str | None]:
    """The stage an evaluated checkpoint belongs to, and the role if it is a model that feeds the stage."""
    where = overlaid(recipes[node.recipe], node.scale, node.arm, "evals")["checkpoints"][node.name]
    stage, _, role = where.partition(".")
    return replace(node, name=stage, kind="stage"), role or None


def _sources(recipes: Mapping[str, "Recipe"], node: Node) -> dict[str, Node]:
    if node.kind == "stage":
        return needs(recipes, node)
    stage, role = _checkpoint(recipes, node)
    needed = needs(recipes, stage) if role else {}
    model = stage if role is None else needed.get(role)
    return ({"model": model} if model else {}) | judges(recipes, node)


def judges(recipes: Mapping[str, "Recipe"], node: Node) -> dict[str, Node]:
    """role -> the node of `evals.models` that an evaluation's tasks score by, not yet its owner."""
    models = overlaid(recipes[node.recipe], node.scale, node.arm, "evals").get("models")
    if not models:
        return {}
    tasks = resolve(recipes, node)["tasks"].values()
    used = {ROLES.get(score) for task in tasks for score in task.get("score", [])}
    return {role: target(recipes, node, text) for role, text in models.items() if role in used}


def _seed(recipes: Mapping[str, "Recipe"], node: Node) -> int:
    """The seed a node is computed with: its own, a pinned stage's, or 0 to evaluate a fixed model."""
    if node.kind == "stage":
        return _stage(recipes, node).get("seed", node.seed)
    nobodys = replace(node, seed=-1)  # no stage is pinned to it: who has it follows the run's seed
    seeds = [_seed(recipes, source) for source in _sources(recipes, nobodys).values()]
    return node.seed if -1 in seeds else next(iter(seeds), 0)
