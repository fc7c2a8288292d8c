"""The recipe, scale, arm and first seed that a command line chooses, after checks."""

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
    """Return a node without a stage's name: the chosen recipe, scale and arm, with the first chosen seed.

    If `arm` is None, it is the recipe's first arm. `target` is the command, for an error message. Raises
    UserError for an unknown recipe, scale or arm.
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
