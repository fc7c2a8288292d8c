"""What a stage needs: that it exists, makes what is wanted, and does not need the stage in turn."""

from encore.errors import UserError, known
from encore.recipe import products
from encore.recipe.graph import Graph, Node


def check_needs(graph: Graph, node: Node, where: str) -> None:
    stage = graph.stage(node)
    for role, text in stage.get("needs", {}).items():
        path = f"stages.{node.name}.needs.{role}"
        check_target(graph, node, text, products.played_by(role, stage["run"]), path, where)


def check_target(graph: Graph, node: Node, text: str, wanted: str, path: str, where: str) -> None:
    """That `text` names an existing stage of an existing recipe which makes what is `wanted`."""
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


def check_cycle(graph: Graph, node: Node, above: list[Node]) -> None:
    """That the node does not need itself, nor does what it needs; `above`: the chain that leads to it."""
    if node in above:
        names = [f"{n.recipe}/{n.name}" for n in [*above[above.index(node) :], node]]
        raise UserError(f"stages.{above[-1].name}.needs: a cycle: {' needs '.join(names)}")
    for source in graph.needs(node).values():
        check_needs(graph, source, "")
        check_cycle(graph, source, [*above, node])
