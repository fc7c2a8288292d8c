"""What a stage needs: that it exists, makes what is wanted, and does not need the stage in turn."""

from encore import worlds
from encore.errors import UserError, known
from encore.recipe import products
from encore.recipe.data_sets import is_data_set
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds.label import REWARDS, check_relabels, check_world

LABELLED = ("samples", "step labels")  # by a world or beforehand


def check_needs(graph: Graph, node: Node, where: str) -> None:
    stage = graph.stage(node)
    for role, text in stage.get("needs", {}).items():
        path = f"stages.{node.name}.needs.{role}"
        check_target(graph, node, text, products.played_by(role, stage["run"]), path, where)


def check_target(graph: Graph, node: Node, text: str, wanted: str, path: str, where: str) -> None:
    """That `text` names an existing stage of an existing recipe which makes what is `wanted`."""
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
    made = products.made(graph.stage(Node(recipe, node.scale, arm or default, node.seed, target, "stage")))
    if made not in wanted.split(" or "):
        raise UserError(f"{path}: stage {target} makes {made}; expected one that makes {wanted}{where}")


def check_cycle(graph: Graph, node: Node, above: list[Node]) -> None:
    """That the node does not need itself, nor does what it needs; `above`: the chain that leads to it."""
    if node in above:
        names = [f"{n.recipe}/{n.name}" for n in [*above[above.index(node) :], node]]
        raise UserError(f"stages.{above[-1].name}.needs: a cycle: {' needs '.join(names)}")
    for source in graph.needs(node).values():
        check_needs(graph, source, "")
        check_cycle(graph, source, [*above, node])


def check_samples(graph: Graph, node: Node) -> None:
    """Raise UserError where a stage `label` perceives a reward that the world of its data does not have."""
    stage = graph.stage(node)
    if stage["run"] != "label" or "data" not in stage.get("needs", {}):
        return
    source = graph.needs(node)["data"]
    drawn = graph.stage(source)
    by, where = stage["by"], f"stage {source.name}"
    if drawn["run"] == "label":
        check_relabels(by, where)
    elif by in REWARDS:
        check_world(by, worlds.of_task(drawn["task"]), where)


def check_data(graph: Graph, node: Node) -> None:
    """Raise UserError unless a stage `reward_model` learns from what its keys are of.

    `labels` take step labels or samples, those of steps a world's alone; `comparisons` preferences.
    """
    stage = graph.stage(node)
    if stage["run"] != "reward_model" or "data" not in stage.get("needs", {}):
        return
    source = graph.needs(node)["data"]
    given = graph.stage(source)
    key, wanted = ("labels", LABELLED) if "labels" in stage else ("comparisons", ("preferences",))
    if (made := products.made(given)) not in wanted:
        raise UserError(
            f"needs.data: {key} takes {' or '.join(wanted)}, and stage {source.name} makes {made}"
        )
    if made == "samples" and is_data_set(given["task"]):
        if stage["labels"] == "steps":
            raise UserError(
                f"labels: a world's verifier labels steps, and stage {source.name} is of a data set; label "
                "its steps by a stage label_steps"
            )
        if "verifier" not in given["task"]:
            raise UserError(f"labels: stage {source.name} has no task.verifier, which labels answers")


def check_scored(graph: Graph, node: Node) -> None:
    """Raise UserError unless the reward model of a stage with `aggregation` has learnt what that reads."""
    aggregation = graph.stage(node).get("aggregation")
    if aggregation is None:
        return
    source = graph.needs(node)["reward_model"]
    labels = graph.stage(source).get("labels")
    if labels is None or (labels == "outcome" and aggregation != "last"):
        wanted = "labels" if aggregation == "last" else "labels: steps"
        raise UserError(
            f"aggregation: {aggregation} needs a reward model with {wanted}, which stage {source.name} lacks"
        )
