"""The evaluations of an arm at a scale: checkpoints, tasks, and the models they score by."""

from collections.abc import Mapping

from recipes.errors import UserError, known
from recipes.spec import eval_tasks as evals_config
from recipes.spec import products
from recipes.spec.checks.needs import check_target
from recipes.spec.checks.tasks import check_task, check_template
from recipes.spec.eval_tasks import ROLES
from recipes.spec.graph import Graph, Node
from recipes.spec.recipe import Recipe


def check_evals(graph: Graph, recipe: Recipe, scale: str, arm: str, where: str) -> None:
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
            check_task(task["task"], [*path.split("."), "task"], where, _hub_task(task))
        if "template" in task:
            check_template(task["template"], path, where)
        for score in task.get("score", []):
            if score in ROLES and ROLES[score] not in evals.get("models", {}):
                raise UserError(
                    f"{path}.score: {score} needs evals.models.{ROLES[score]}, which is missing{where}"
                )
    for role, text in evals.get("models", {}).items():
        node = Node(recipe.name, scale, arm, 0, role, "eval")
        check_target(graph, node, text, products.played_by(role), f"evals.models.{role}", where)
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
