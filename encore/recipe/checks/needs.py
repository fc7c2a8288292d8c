"""Checks of the stages that a stage needs: each exists, has the right product, and is on no cycle."""

from encore.errors import UserError, known
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds.grpo import GrpoStage
from encore.recipe.kinds.label import REWARDS, LabelStage, check_relabels, check_world
from encore.recipe.kinds.reward_model import RewardModelStage
from encore.recipe.kinds.stage import Asking, Stage
from encore.recipe.task import GymTask

LABELLED = ("samples", "step labels")  # products that a world labels, or that have labels already


def _readable_stage(graph: Graph, node: Node) -> Stage | None:
    """Return a stage, or None if its keys have mistakes, which are reported where the stage is checked."""
    try:
        return graph.stage(node)
    except UserError:
        return None


def check_needs(graph: Graph, node: Node, where: str) -> None:
    """Raise UserError for the first role in `needs` whose stage does not exist or has the wrong product."""
    if (stage := _readable_stage(graph, node)) is None:
        return
    for role, text in stage.needs.items():
        check_target(graph, node, text, stage.played_by(role), f"stages.{node.name}.needs.{role}", where)


def check_target(graph: Graph, node: Node, text: str, wanted: str, path: str, where: str) -> None:
    """Raise UserError unless `text` names an existing stage with a product in `wanted`, such as "samples"."""
    recipe, target, arm = node.reference(text)
    known(path, [recipe], list(graph.recipes), "recipe")
    known(path, [node.scale], graph.recipes[recipe].scales, f"scale of recipe {recipe}")
    arms = graph.recipes[recipe].arms(node.scale)
    if not arms:
        raise UserError(f"{path}: recipe {recipe} has no arm at scale {node.scale}{where}")
    default = node.arm if recipe == node.recipe else arms[0]
    known(path, [arm or default], arms, f"arm of recipe {recipe} at scale {node.scale}")
    stages = graph.recipes[recipe].stages(node.scale, arm or default)
    known(path, [target], stages, f"stage of recipe {recipe}")
    stage = _readable_stage(graph, Node(recipe, node.scale, arm or default, node.seed, target, "stage"))
    if stage and stage.made not in wanted.split(" or "):
        raise UserError(f"{path}: stage {target} makes {stage.made}; expected one that makes {wanted}{where}")


def check_cycle(graph: Graph, node: Node, above: list[Node]) -> None:
    """Raise UserError if the node needs itself through other nodes; `above` is the chain that leads to it."""
    if node in graph.acyclic:
        return
    if node in above:
        names = [f"{n.recipe}/{n.name}" for n in [*above[above.index(node) :], node]]
        raise UserError(f"stages.{above[-1].name}.needs: a cycle: {' needs '.join(names)}")
    for source in graph.needs(node).values() if _readable_stage(graph, node) else ():
        check_needs(graph, source, "")
        check_cycle(graph, source, [*above, node])
    graph.acyclic.add(node)


def check_inputs(graph: Graph, node: Node) -> None:
    """Raise UserError if the keys of a stage contradict the stages that make its inputs."""
    _check_samples(graph, node)
    _check_data(graph, node)
    _check_scored(graph, node)


def _check_samples(graph: Graph, node: Node) -> None:
    """Raise UserError if the labeller of a stage `label` cannot label its data.

    Samples need a world with the labeller's reward; preferences need a labeller that can label them again.
    """
    stage = graph.stage(node)
    if not isinstance(stage, LabelStage) or "data" not in stage.needs:
        return
    source = graph.needs(node)["data"]
    drawn, where = graph.stage(source), f"stage {source.name}"
    if isinstance(drawn, LabelStage):
        check_relabels(stage.by, where)
    elif stage.by in REWARDS and isinstance(drawn, Asking) and drawn.task:
        check_world(stage.by, drawn.task.make_world(), where)


def _check_data(graph: Graph, node: Node) -> None:
    """Raise UserError unless the data of a stage `reward_model` fit its keys.

    `labels` need step labels or samples, and labels of steps need a world; `comparisons` need preferences.
    """
    stage = graph.stage(node)
    if not isinstance(stage, RewardModelStage) or "data" not in stage.needs:
        return
    source = graph.needs(node)["data"]
    maker = graph.stage(source)
    key, wanted = ("labels", LABELLED) if stage.labels else ("comparisons", ("preferences",))
    if maker.made not in wanted:
        raise UserError(
            f"needs.data: {key} takes {' or '.join(wanted)}, and stage {source.name} makes {maker.made}"
        )
    task = maker.task if isinstance(maker, Asking) and maker.made == "samples" else None
    if isinstance(task, GymTask) and stage.labels == "steps":
        raise UserError(
            f"labels: reasoning-gym, the task of stage {source.name}, verifies answers alone; write labels: "
            "outcome"
        )
    if task and task.make_world() is None:
        if stage.labels == "steps":
            raise UserError(
                f"labels: a world's verifier labels steps, and stage {source.name} is of a data set; label "
                "its steps by a stage label_steps"
            )
        if not task.is_verified:
            raise UserError(f"labels: stage {source.name} has no task.verifier, which labels answers")


def _check_scored(graph: Graph, node: Node) -> None:
    """Raise UserError unless the reward model of a stage with `aggregation` has learnt the labels for it."""
    stage = graph.stage(node)
    if not isinstance(stage, GrpoStage) or stage.aggregation is None:
        return
    source = graph.needs(node)["reward_model"]
    learnt = graph.stage(source)
    labels = learnt.labels if isinstance(learnt, RewardModelStage) else None
    if labels is None or (labels == "outcome" and stage.aggregation != "last"):
        wanted = "labels" if stage.aggregation == "last" else "labels: steps"
        raise UserError(
            f"aggregation: {stage.aggregation} needs a reward model with {wanted}, which stage {source.name} "
            "lacks"
        )
