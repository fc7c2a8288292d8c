"""The evaluations of an arm at a scale: checkpoints, tasks, and the models they score by."""

from collections.abc import Mapping
from dataclasses import replace

from encore.errors import UserError, known
from encore.recipe import lm_eval_tasks, protocols
from encore.recipe.checks import sensitivity
from encore.recipe.checks.needs import check_target
from encore.recipe.checks.tasks import check_form, check_task, under
from encore.recipe.eval_tasks import ROLES, tasks
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds.reward_model import RewardModelStage
from encore.recipe.kinds.stage import Stage
from encore.recipe.machine import check_one
from encore.recipe.metric_names import BY_STEPS
from encore.recipe.recipe import Recipe
from encore.recipe.schema import check, definition
from encore.recipe.sensitivity import KEY


def check_evals(graph: Graph, recipe: Recipe, scale: str, arm: str, where: str) -> None:
    evals = recipe.layers.merged(scale, arm, "evals")
    checkpoints = evals.get("checkpoints", {})
    with under("evals", where):
        sensitivity.check_names(evals)
        check_one(evals.get("resources", {}).get("gpu", 0))
    for name, place in checkpoints.items():
        _check_checkpoint(
            f"evals.checkpoints.{name}", place, graph, Node(recipe.name, scale, arm, 0, "", "stage"), where
        )
    _check_order(checkpoints, where)
    if evals.get("tasks") and not checkpoints:
        raise UserError(f"evals.checkpoints: missing: there are tasks, and nothing to measure by them{where}")
    for name, task in evals.get("tasks", {}).items():
        _check_task(f"evals.tasks.{name}", task, evals, where)
    for role, text in evals.get("models", {}).items():
        node = Node(recipe.name, scale, arm, 0, role, "eval")
        check_target(graph, node, text, Stage.played_by(role), f"evals.models.{role}", where)
        judge = graph.stage(graph.target(node, text))
        if role == "proxy" and isinstance(judge, RewardModelStage) and judge.labels != "steps":
            _check_unlabelled(evals, text, where)
    _check_tasks_of(graph, recipe, scale, arm, list(checkpoints), where)
    if arm == recipe.arms(scale)[0]:
        _check_base(graph, recipe, scale, evals, where)
        if KEY in evals:
            with under("evals", where):
                sensitivity.check(evals)
            _check_tasks_of(graph, recipe, scale, arm, recipe.sensitivity(scale, arm), where)


def _check_unlabelled(evals: Mapping, stage: str, where: str) -> None:
    """That no task scores by the steps of a reward model that has learnt none."""
    for name, task in evals.get("tasks", {}).items():
        for score in task.get("score", []):
            if score in BY_STEPS:
                raise UserError(
                    f"evals.tasks.{name}.score: {score} needs a reward model with labels: steps, which stage "
                    f"{stage} has not{where}"
                )


def _check_order(checkpoints: Mapping[str, str], where: str) -> None:
    """That the model a stage begins with stands before its product: reports go by the order."""
    places = list(checkpoints.items())
    for i, (name, place) in enumerate(places):
        earlier = next((other for other, at in places[:i] if place == f"{at}.policy"), None)
        if earlier:
            raise UserError(
                f"evals.checkpoints.{name}: written after {earlier}, which is trained from it; "
                f"write it before: the first is shown as before training, the last as after it{where}"
            )


def _check_tasks_of(graph: Graph, recipe: Recipe, scale: str, arm: str, names: list[str], where: str) -> None:
    """What goes together in the tasks of these evaluations."""
    for name in names:
        node = Node(recipe.name, scale, arm, 0, name, "eval")
        try:
            tasks(graph.config(node))
        except UserError as error:
            raise UserError(f"{error}{where}") from None


def _check_base(graph: Graph, recipe: Recipe, scale: str, evals: Mapping, where: str) -> None:
    """That candidate templates are for a base model, which the scale's first arm evaluates."""
    for name, task in evals.get("tasks", {}).items():
        places = task.get("checkpoints", evals["checkpoints"]) if "templates" in task else ()
        nodes = [Node(recipe.name, scale, recipe.arms(scale)[0], 0, place, "eval") for place in places]
        if nodes and not any(map(graph.is_base, nodes)):
            reason = "they are for a base model, which none of its checkpoints is; remove them"
            raise UserError(f"evals.tasks.{name}.templates: {reason}{where}")


def _check_checkpoint(path: str, place: str, graph: Graph, at: Node, where: str) -> None:
    """That `place`, a stage or a stage's role (`grpo.policy`), exists in the arm of `at` and is a model."""
    name, _, role = place.partition(".")
    known(path, [name], graph.recipes[at.recipe].stages(at.scale, at.arm), f"stage{where}")
    node = replace(at, name=name)
    stage = graph.stage(node)
    if role:
        roles = [*stage.needs, *(["policy"] if graph.model_of(node) else [])]
        known(path, [role], roles, f"role of stage {name}{where}")
    made = stage.played_by(role) if role else stage.made
    if made != "a model":
        raise UserError(f"{path}: {place} is {made}; expected a model{where}")


def _check_task(path: str, task: Mapping, evals: Mapping, where: str) -> None:
    """That the task's data set, template, checkpoints and scoring models are there."""
    protocols.check(task, path)
    known(f"{path}.checkpoints", task.get("checkpoints", []), list(evals["checkpoints"]), "checkpoint")
    if "task" in task:
        check_task(task["task"], [*path.split("."), "task"], where, _hub_task(task))
        check_form(task, path, where)
    if "lm_eval" in task:
        with under(path, where):
            lm_eval_tasks.find(task["lm_eval"])
    if model := task.get("judge", {}).get("model"):
        source = "model-path" if "path" in model else "model-hub"
        check(model, definition(source), [*path.split("."), "judge", "model"], where)
    for score in task.get("score", []):
        role = ROLES.get(score)
        if role and role not in evals.get("models", {}):
            raise UserError(f"{path}.score: {score} needs evals.models.{role}, which is missing{where}")


def _hub_task(task: Mapping) -> str:
    """The definition of a Hub dataset for this task: with answers to verify, unless it has other scores, or
    with pairs, of whose replies the better one is what a judge compares with."""
    if "chosen" in task["task"]:
        return "task-hub-preferences"
    unverified = task.get("score") and "verifier" not in task["task"]
    return "task-hub-prompts" if unverified else "task-hub"
