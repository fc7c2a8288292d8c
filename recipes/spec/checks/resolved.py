"""Checks of a recipe, each mistake told as one `UserError` line: where, what is wrong, what would be right.

What its layers resolve to at every scale and arm, with the recipes it builds on. Before, `layers` has checked
the shape of the file and each layer (base, scale, arm) by itself.
"""

from collections.abc import Callable, Mapping
from typing import Any

from recipes.errors import UserError
from recipes.models import shape
from recipes.spec.checks import claims, dpo, grpo, label, layers, ppo, reward_model, sft
from recipes.spec.checks.evals import check_evals
from recipes.spec.checks.needs import check_cycle, check_needs
from recipes.spec.checks.tasks import check_task, check_template, check_world, definition, under
from recipes.spec.graph import Graph, Node
from recipes.spec.recipe import Recipe
from recipes.spec.schema import check, schema

# Kind of stage -> the rule of which of its keys go together.
COMBINATIONS: dict[str, Callable[[Mapping], None]] = {
    "grpo": grpo.check,
    "label": label.check,
    "ppo": ppo.check,
    "dpo": dpo.check,
    "reward_model": reward_model.check,
    "sft": sft.check,
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
                check_needs(graph, node, where)
                _check_stage(recipe.overlaid(scale, arm, "stages")[name], f"stages.{name}", where)
                with under(f"stages.{name}", where):
                    label.check_samples(graph, node)
            check_evals(graph, recipe, scale, arm, where)
            for name in recipe.stages(scale, arm):
                check_cycle(graph, Node(recipe.name, scale, arm, 0, name, "stage"), [])
        if not recipe.selection(scale, "quickstart", None)[0]:
            raise UserError(f"quickstart.arms: none of them exists at scale {scale}")
    claims.check(recipe)


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
        check_task(stage["task"], [*path.split("."), "task"], where, kind.get("hub", "task-hub"))
        check_world(stage, path, where)
    if "template" in stage:
        check_template(stage["template"], path, where)
    if "model" in kind["properties"] and not kind["needs"]:  # from nothing: its shape
        with under(path, where):
            shape.shape(stage["model"])
    elif "model" in kind["properties"]:
        has_model, has_policy = "model" in stage, "policy" in stage.get("needs", {})
        if has_model == has_policy:
            both = "both are" if has_model else "neither is"
            raise UserError(f"{path}: it starts from one of needs.policy and model; {both} given{where}")
        if has_model:
            source = "model-path" if "path" in stage["model"] else "model-hub"
            check(stage["model"], definition(source), [*path.split("."), "model"], where)
    for names in kind.get("written-out", []):
        alternatives = [names] if isinstance(names, str) else names
        if not any(name in stage["args"] for name in alternatives):
            default = layers.config_fields(stage["run"])[alternatives[0]].default
            raise UserError(
                f"{path}.args: {' or '.join(alternatives)}: missing{where}: it defines the objective, and "
                f"TRL's default {default} would be used silently; write it out"
            )
    if stage["run"] in COMBINATIONS:
        with under(path, where):
            COMBINATIONS[stage["run"]](stage)
