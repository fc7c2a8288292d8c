"""What a recipe's layers come to at every scale and arm, with the recipes it builds on.

A mistake is one `UserError` line: where, what is wrong, what would be right. `layers` has already checked the
shape of the file and each layer (stage, scale, arm) by itself.
"""

from typing import Any

from encore.errors import Mistakes, UserError
from encore.recipe.checks import claims, dials, stage_ladder
from encore.recipe.checks.data_sets import check_decontaminate
from encore.recipe.checks.evals import check_evals
from encore.recipe.checks.evaluate_every import check_evaluate_every
from encore.recipe.checks.needs import check_cycle, check_data, check_needs, check_samples, check_scored
from encore.recipe.checks.tasks import under
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds.stage import Stage
from encore.recipe.recipe import Recipe


def check_resolved(graph: Graph, recipe: Recipe) -> None:
    """The stages and evaluations of every arm at every scale, then what claims and published numbers
    compare, the gates that claims need, the frontiers that both use, the steps of the ladder of stages, and
    the sweeps that dials come from."""
    mistakes = Mistakes()
    for scale in recipe.scales:
        for arm in recipe.arms(scale):
            _check_arm(graph, recipe, scale, arm, mistakes)
        if not recipe.selection(scale, "quickstart", None)[0]:
            mistakes.note(f"quickstart.arms: none of them exists at scale {scale}")
    if not any(line.startswith("evals") for line in mistakes.lines):  # which all that follows names
        with mistakes.gather_further():
            claims.check(recipe)
    if not mistakes.lines:  # it follows what each step is built on
        with mistakes.gather():
            stage_ladder.check(graph, recipe)
    with mistakes.gather():
        dials.check(graph, recipe)
    mistakes.tell()


def _check_arm(graph: Graph, recipe: Recipe, scale: str, arm: str, mistakes: Mistakes) -> None:
    where = f" (scale {scale}, arm {arm})"
    stages = recipe.layers.merged(scale, arm, "stages")
    for name, stage in stages.items():
        if "run" not in stage:  # deleted by a layer, and in part written again by one above
            return mistakes.note(f"stages.{name}.run: missing{where}")
    nodes = [Node(recipe.name, scale, arm, 0, name, "stage") for name in stages]
    found = Mistakes()
    with found.gather():
        evals = recipe.evals(scale, arm)
    for node in nodes:
        path = f"stages.{node.name}"
        with found.gather():
            check_needs(graph, node, where)
        with found.gather():
            _check_stage(graph.stage(node), path, where)
        if found.lines:
            continue  # what follows reads what these have found to be there
        with found.gather(), under(path, where):
            check_samples(graph, node)
            check_data(graph, node)
            check_scored(graph, node)
            check_evaluate_every(node.name, stages[node.name], evals)
        with found.gather():
            check_decontaminate(stages[node.name], evals, path, where)
    if not found.lines:
        with found.gather():
            check_evals(graph, recipe, scale, arm, where)
    if not found.lines:
        for node in nodes:
            with found.gather():
                check_cycle(graph, node, [])
    for line in found.lines:
        mistakes.note(line)


def _check_stage(typed: Stage, path: str, where: str) -> None:
    """What a stage must have once all layers are laid on each other."""
    mistakes = Mistakes()
    _check_required(typed, path, where)
    with mistakes.gather():
        _check_written_out(typed, path, where)
    with mistakes.gather():
        typed.check(path, where)
    mistakes.tell()


def _check_required(stage: Stage, path: str, where: str) -> None:
    for key in stage.required:
        if key not in _stood_for(stage) and not _is_said(stage, key):
            raise UserError(f"{path}.{key}: missing{where}")


def _is_said(stage: Stage, key: str) -> bool:
    """Whether a stage says a key, such as args.learning_rate."""
    value: Any = stage
    for part in key.split("."):
        if part not in (value if isinstance(value, dict) else value.model_fields_set):
            return False
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    return True


def _stood_for(stage: Stage) -> set[str]:
    """The keys and fields of `args` that others take the place of."""
    return {name for key in stage.model_fields_set for name in stage.stands_for.get(key, ())}


def _check_written_out(stage: Stage, path: str, where: str) -> None:
    """That `args` has the fields that define the objective, rather than TRL's defaults."""
    args: Any = getattr(stage, "args", None)
    for names in stage.written_out:
        alternatives = [names] if isinstance(names, str) else [*names]
        if not {*args.model_fields_set, *_stood_for(stage)} & {*alternatives}:
            default = type(args).model_fields[alternatives[0]].default
            raise UserError(
                f"{path}.args: {' or '.join(alternatives)}: missing{where}: it defines the objective, and "
                f"TRL's default {default!r} would be used silently; write it out"
            )
