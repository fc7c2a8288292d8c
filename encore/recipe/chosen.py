"""The arm of a recipe that a command line chooses, after checks."""

from encore.errors import UserError, nearest
from encore.recipe.graph import Graph, Node


def first_node(
    graph: Graph,
    name: str | None,
    scale: str,
    arm: str | None = None,
    seeds: int | tuple[int, ...] | None = None,
    target: str = "preflight",
) -> Node:
    """Return a node without a name, of an arm's first seed; if `arm` is None, of the recipe's first arm.

    Raises UserError for an unknown recipe, scale or arm.
    """
    if name is None:
        raise UserError(f"{target}: --config recipe=… is missing: which recipe does it belong to?")
    if name not in graph.recipes:
        raise UserError(f'--config recipe: unknown recipe "{name}"{nearest(name, [*graph.recipes])}')
    recipe = graph.recipes[name]
    recipe.require_scale(scale, "--config scale")
    arms = recipe.arms(scale)
    if arm not in (None, *arms):
        raise UserError(f'--config arm: unknown arm "{arm}" at scale {scale}{nearest(arm, arms)}')
    _, numbers = recipe.selection(scale, "report", seeds)
    return Node(name, scale, arm or arms[0], numbers[0], "", "stage")
