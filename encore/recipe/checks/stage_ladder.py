"""Checks of section `stage_ladder`: each step is a checkpoint, named once, above the steps built on it."""

from encore.errors import UserError, known
from encore.recipe.checks.claims import check_checkpoint
from encore.recipe.graph import Graph, Node
from encore.recipe.recipe import Recipe


def check_stage_ladder(graph: Graph, recipe: Recipe) -> None:
    """Check every step at each scale that has its arm."""
    steps = recipe.document.stage_ladder
    for key in ("name", "at"):
        values = [getattr(step, key) for step in steps]
        for index, value in enumerate(values):
            if value in values[:index]:
                raise UserError(f'stage_ladder[{index}].{key}: "{value}" is written twice')
    for index, step in enumerate(steps):
        arm = step.at.partition("/")[0]
        known(f"stage_ladder[{index}].at", [arm], list(recipe.document.arms), "arm")
    for scale in recipe.scales:
        _check_at(graph, recipe, scale)


def _check_at(graph: Graph, recipe: Recipe, scale: str) -> None:
    above: dict[str, set[Node]] = {}  # name -> all stages that lead to the step
    for index, step in enumerate(recipe.document.stage_ladder):
        path = f"stage_ladder[{index}].at"
        if step.at.partition("/")[0] not in recipe.arms(scale):
            continue
        arm, checkpoint = check_checkpoint(recipe, scale, path, step.at)
        model = graph.maker(Node(recipe.name, scale, arm, 0, checkpoint, "eval"))
        for name, made_of in above.items():
            if model in made_of:
                raise UserError(
                    f"{path}: {name}, which stands above it, is built on it (scale {scale}); "
                    f"write {step.name} first"
                )
        above[step.name] = set(graph.with_upstream([model])) - {model} if model else set()
