"""Checks that the stages and models which the evaluations of an arm name exist and fit."""

from dataclasses import replace

from encore.errors import UserError, known
from encore.recipe.base import below
from encore.recipe.checks.needs import check_target
from encore.recipe.evals import Evals
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds.grpo import GrpoStage
from encore.recipe.kinds.rejection_sampling import RejectionSamplingStage
from encore.recipe.kinds.reward_model import RewardModelStage
from encore.recipe.kinds.sft import SftStage
from encore.recipe.kinds.stage import Stage
from encore.recipe.metric_names import BY_STEPS
from encore.recipe.recipe import Recipe
from encore.recipe.task import DataSet


def check_evals(graph: Graph, recipe: Recipe, scale: str, arm: str, where: str) -> None:
    """Raise UserError with the mistakes in an arm's evaluations; each line ends with `where`."""
    evals, is_first = recipe.evals(scale, arm), arm == recipe.arms(scale)[0]
    for name, place in evals.checkpoints.items():
        _check_checkpoint(
            f"evals.checkpoints.{name}", place, graph, Node(recipe.name, scale, arm, 0, "", "stage"), where
        )
    if mistakes := [*below("evals", evals.mistakes(is_first))]:
        raise UserError("\n".join(f"{key}: {words}{where}" for key, words in mistakes))
    for role, text in evals.models.by_role.items():
        node = Node(recipe.name, scale, arm, 0, role, "eval")
        check_target(graph, node, text, Stage.played_by(role), f"evals.models.{role}", where)
        judge = graph.stage(graph.target(node, text))
        if role == "proxy" and isinstance(judge, RewardModelStage) and judge.labels != "steps":
            _check_unlabelled(evals, text, where)
    if is_first:
        _check_base(graph, recipe, scale, evals, where)


def _check_unlabelled(evals: Evals, stage: str, where: str) -> None:
    """Raise UserError if a task scores steps, for which the reward model of `stage` has no labels."""
    for name, task in evals.tasks.items():
        for score in task.score:
            if score in BY_STEPS:
                raise UserError(
                    f"evals.tasks.{name}.score: {score} needs a reward model with labels: steps, which stage "
                    f"{stage} does not have{where}"
                )


def _check_base(graph: Graph, recipe: Recipe, scale: str, evals: Evals, where: str) -> None:
    """Raise UserError if candidate templates are set but the first arm evaluates no base model."""
    for name, task in evals.tasks.items():
        places = (task.checkpoints or evals.checkpoints) if task.templates else ()
        nodes = [Node(recipe.name, scale, recipe.arms(scale)[0], 0, place, "eval") for place in places]
        if nodes and not any(map(graph.is_base, nodes)):
            reason = "they are for a base model, which none of its checkpoints is; remove them"
            raise UserError(f"evals.tasks.{name}.templates: {reason}{where}")


def _check_checkpoint(path: str, place: str, graph: Graph, at: Node, where: str) -> None:
    """Raise UserError unless `place` is a stage or a stage's input (`grpo.policy`), and a model."""
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


def check_marks(name: str, stage: Stage, evals: Evals) -> None:
    """Raise UserError if the product of a stage with `evaluate_every` is no checkpoint, so has no tasks.

    Raises it also if a checkpoint already has the name of one of the steps to measure.
    """
    if not stage.marks:
        return
    measured = next((key for key, place in evals.checkpoints.items() if place == name), None)
    if measured is None:
        words = f"no checkpoint of evals.checkpoints is the product of this stage; add one: {{after: {name}}}"
        raise UserError(f"evaluate_every: {words}")
    for step in stage.marks:
        if (mark := f"{measured}_step{step}") in evals.checkpoints:
            words = f"evals.checkpoints.{mark} has the name of step {step}; rename it"
            raise UserError(f"evaluate_every: {words}")


def check_decontaminate(stage: Stage, evals: Evals) -> None:
    """Raise UserError if `decontaminate` is set, but no prompts, or no evaluation, are of a data set."""
    if not isinstance(stage, GrpoStage | RejectionSamplingStage | SftStage) or not stage.decontaminate:
        return
    parts = [stage.task]
    if isinstance(stage, GrpoStage):
        parts += [domain.task for domain in (stage.domains or {}).values()]
    if isinstance(stage, SftStage):
        parts += [source.task for source in stage.also.values()]
    if not any(isinstance(task, DataSet) for task in parts):
        words = "no task here is a data set; a world's test questions are never trained on"
        raise UserError(f"decontaminate: {words}")
    if not evals.data_sets:
        raise UserError("decontaminate: evals.tasks has no data set to keep out of the prompts")
