"""Checks of a recipe, each mistake told as one `UserError` line: where, what is wrong, what would be right.

What its layers resolve to at every scale and arm, with the recipes it builds on. Before, `layers` has checked
the shape of the file and each layer (base, scale, arm) by itself.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from evals import config as evals_config
from evals.config import ROLES
from recipes import compared, layers, products
from recipes.checks import dpo, grpo, label, ppo, reward_model
from recipes.errors import UserError
from recipes.graph import Graph, Node
from recipes.shape import check, known, schema
from recipes.spec.recipe import Recipe

# Kind of stage -> the rule of which of its keys go together.
COMBINATIONS: dict[str, Callable[[Mapping], None]] = {
    "grpo": grpo.check,
    "label": label.check,
    "ppo": ppo.check,
    "dpo": dpo.check,
    "reward_model": reward_model.check,
    "sft": products.check_demonstrations,
}


def check_whole(graph: Graph, recipe: Recipe) -> None:
    """The recipe as it resolves at every scale and arm, then its claims."""
    for scale in recipe.spec["scales"]:
        for arm in recipe.arms(scale):
            where = f" (scale {scale}, arm {arm})"
            for name, stage in recipe.overlaid(scale, arm, "stages").items():
                if "run" not in stage:  # deleted by a layer, and in part written again by one above
                    raise UserError(f"stages.{name}.run: missing{where}")
            for name in recipe.stages(scale, arm):
                node = Node(recipe.name, scale, arm, 0, name, "stage")
                _check_needs(graph, node, where)
                _check_stage(recipe.overlaid(scale, arm, "stages")[name], f"stages.{name}", where)
                with _under(f"stages.{name}", where):
                    label.check_samples(graph, node)
            _check_evals(graph, recipe, scale, arm, where)
            for name in recipe.stages(scale, arm):
                _check_cycle(graph, Node(recipe.name, scale, arm, 0, name, "stage"), [])
        if not recipe.selection(scale, "quickstart", None)[0]:
            raise UserError(f"quickstart.arms: none of them exists at scale {scale}")
    compared.check(recipe)


def _check_stage(stage: Mapping, path: str, where: str) -> None:
    """What a stage must have once all layers are laid on each other."""
    kind = schema()["x-kinds"][stage["run"]]
    for key in kind["required"]:
        at: Any = stage
        for part in key.split("."):
            at = at.get(part) if at else None
        if at is None:
            raise UserError(f"{path}.{key}: missing{where}")
    if "task" in stage:
        _check_task(stage["task"], [*path.split("."), "task"], where, kind.get("hub", "task-hub"))
        _check_world(stage, path, where)
    if "template" in stage:
        _check_template(stage["template"], path, where)
    if "model" in kind["properties"] and not kind["needs"]:  # from nothing: its shape
        from recipes import models

        with _under(path, where):
            models.shape(stage["model"])
    elif "model" in kind["properties"]:
        has_model, has_policy = "model" in stage, "policy" in stage.get("needs", {})
        if has_model == has_policy:
            both = "both are" if has_model else "neither is"
            raise UserError(f"{path}: it starts from one of needs.policy and model; {both} given{where}")
        if has_model:
            source = "model-path" if "path" in stage["model"] else "model-hub"
            check(stage["model"], _definition(source), [*path.split("."), "model"], where)
    for names in kind.get("written-out", []):
        alternatives = [names] if isinstance(names, str) else names
        if not any(name in stage["args"] for name in alternatives):
            default = layers.config_fields(stage["run"])[alternatives[0]].default
            raise UserError(
                f"{path}.args: {' or '.join(alternatives)}: missing{where}: it defines the objective, and "
                f"TRL's default {default} would be used silently; write it out"
            )
    if stage["run"] in COMBINATIONS:
        with _under(path, where):
            COMBINATIONS[stage["run"]](stage)


def _check_task(task: Mapping, path: list[str], where: str, hub: str = "task-hub") -> None:
    check(task, _definition(hub if "hub" in task else "task-world"), path, where)
    if "world" in task:
        from recipes import worlds

        with _under(".".join(path), where):
            worlds.make(task)


def _check_world(stage: Mapping, path: str, where: str) -> None:
    """What a stage takes from its task's world by name: kinds of document, rewards."""
    from recipes import corpora, rewards, worlds

    world = worlds.of_task(stage["task"])
    if "corpus" in stage:
        if world is None:
            raise UserError(f"{path}.task: a corpus is written by a world; this task has none{where}")
        if "mixture" in stage["corpus"]:
            with _under(f"{path}.corpus", where):
                corpora.check(world, stage["corpus"])
    if "rewards" in stage:
        if not stage["rewards"]:
            raise UserError(f"{path}.rewards: must not be empty{where}")
        with _under(path, where):
            own = ppo.own if stage["run"] == "ppo" else list
            rewards.check(own(stage["rewards"]), world)
            cap = stage.get("args", {}).get("max_completion_length")
            rewards.check_overlong(stage["rewards"], stage.get("soft_overlong_cache"), cap)


def _check_template(template: str, path: str, where: str) -> None:
    from recipes import worlds

    with _under(path, where):
        worlds.prompt(template, "")


def _check_needs(graph: Graph, node: Node, where: str) -> None:
    stage = graph.stage(node)
    for role, text in stage.get("needs", {}).items():
        path = f"stages.{node.name}.needs.{role}"
        _check_target(graph, node, text, products.played_by(role, stage["run"]), path, where)


def _check_target(graph: Graph, node: Node, text: str, wanted: str, path: str, where: str) -> None:
    """That `text` names a stage there is, of a recipe there is, which makes what is `wanted`."""
    recipe, target, arm = node.reference(text)
    known(path, [recipe], list(graph.recipes), "recipe")
    known(path, [node.scale], list(graph.recipes[recipe].spec["scales"]), f"scale of recipe {recipe}")
    arms = graph.recipes[recipe].arms(node.scale)
    if not arms:
        raise UserError(f"{path}: recipe {recipe} has no arm at scale {node.scale}{where}")
    default = node.arm if recipe == node.recipe else arms[0]
    known(path, [arm or default], arms, f"arm of recipe {recipe} at scale {node.scale}")
    stages = graph.recipes[recipe].stages(node.scale, arm or default)
    known(path, [target], stages, f"stage of recipe {recipe}")
    made = products.made(graph.stage(Node(recipe, node.scale, arm or default, node.seed, target, "stage")))
    if made not in wanted.split(" or "):
        raise UserError(f"{path}: stage {target} makes {made}; expected one that makes {wanted}{where}")


def _check_cycle(graph: Graph, node: Node, above: list[Node]) -> None:
    if node in above:
        names = [f"{n.recipe}/{n.name}" for n in [*above[above.index(node) :], node]]
        raise UserError(f"stages.{above[-1].name}.needs: a cycle: {' needs '.join(names)}")
    for source in graph.needs(node).values():
        _check_needs(graph, source, "")
        _check_cycle(graph, source, [*above, node])


def _check_evals(graph: Graph, recipe: Recipe, scale: str, arm: str, where: str) -> None:
    evals = recipe.overlaid(scale, arm, "evals")
    stages = recipe.overlaid(scale, arm, "stages")
    for name, place in evals.get("checkpoints", {}).items():
        stage, _, role = place.partition(".")
        known(f"evals.checkpoints.{name}", [stage], list(stages), f"stage{where}")
        if role:
            roles = list(stages[stage].get("needs", {}))
            if {"hub", "path"} & stages[stage].get("model", {}).keys():
                roles.append("policy")
            known(f"evals.checkpoints.{name}", [role], roles, f"role of stage {stage}{where}")
        run = stages[stage]["run"]
        if (made := products.played_by(role, run) if role else products.made(stages[stage])) != "a model":
            raise UserError(f"evals.checkpoints.{name}: {place} is {made}; expected a model{where}")
    checkpoints = list(evals.get("checkpoints", {}))
    if evals.get("tasks") and not checkpoints:
        raise UserError(f"evals.checkpoints: missing: there are tasks, and nothing to measure by them{where}")
    for name, task in evals.get("tasks", {}).items():
        path = f"evals.tasks.{name}"
        known(f"{path}.checkpoints", task.get("checkpoints", []), checkpoints, "checkpoint")
        if "task" in task:
            _check_task(task["task"], [*path.split("."), "task"], where, _hub_task(task))
        if "template" in task:
            _check_template(task["template"], path, where)
        for score in task.get("score", []):
            if score in ROLES and ROLES[score] not in evals.get("models", {}):
                raise UserError(
                    f"{path}.score: {score} needs evals.models.{ROLES[score]}, which is missing{where}"
                )
    for role, text in evals.get("models", {}).items():
        node = Node(recipe.name, scale, arm, 0, role, "eval")
        _check_target(graph, node, text, products.played_by(role), f"evals.models.{role}", where)
    for name in checkpoints:
        node = Node(recipe.name, scale, arm, 0, name, "eval")
        try:
            evals_config.parse(graph.config(node))
        except UserError as error:
            raise UserError(f"{error}{where}") from None


def _hub_task(task: Mapping) -> str:
    """What an evaluation's task of the Hub must have: answers to verify, unless it has other scores."""
    unverified = task.get("score") and "verifier" not in task["task"]
    return "task-hub-prompts" if unverified else "task-hub"


@contextmanager
def _under(path: str, where: str) -> Iterator[None]:
    """The mistakes that the owner of a rule finds, with their place in the recipe."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{path}.{str(error).removeprefix('task.')}{where}") from None


def _definition(name: str) -> dict:
    return {"$ref": f"#/$defs/{name}"}
