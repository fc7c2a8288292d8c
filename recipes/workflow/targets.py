"""What the command line asks of the workflow, checked before any job starts."""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from recipes.errors import UserError, nearest
from recipes.planning.hardware import Assumptions
from recipes.runtime import tracking
from recipes.spec.graph import Graph, Node
from recipes.spec.load import INNER, TARGETS
from recipes.spec.looks import AUTO, LOOKS
from recipes.spec.recipe import REPORTS, Recipe
from recipes.workflow.outputs import BENCHMARKS, EVAL_FILES, REPORT_FILES, STAGE_FILES, Report
from snakemake_logger_plugin_encore import is_snakemake

# Modes of Snakemake that only look: they neither run jobs nor need the folder to themselves.
LOOKING = ["dryrun", "lint", "list_rules", "list_target_rules", "list_changes", "list_untracked", "summary"]
LOOKING += ["detailed_summary", "dag", "rulegraph", "filegraph", "d3dag", "print_compilation", "report"]
KEYS = ("scale", "seeds", "track")  # of --config, for every target
OF_ONE = {  # and for these targets alone
    "preflight": ("recipe", "arm"),
    "plan": ("recipe", "gpus", *Assumptions.__dataclass_fields__),
}


@dataclass(frozen=True)
class Choice:
    """`--config scale=… seeds=… track=…`, and what goes with one target alone."""

    scale: str
    seeds: int | None  # None: as many as the recipe says
    auto: bool = False  # from look to look, where the recipe claims anything
    track: str = tracking.NONE  # what follows each training
    recipe: str | None = None
    arm: str | None = None  # None: the recipe's first
    asked: tuple[tuple[str, Any], ...] = ()  # all of --config


def choice(recipes: Mapping[str, Recipe], config: Mapping[str, Any]) -> Choice:
    """The run's choices. Raises UserError for any other key, unknown scale or tracker, no number of seeds."""
    keys = sorted({*KEYS, *chain.from_iterable(OF_ONE.values())})
    for key in config:
        if key not in keys:
            raise UserError(f"--config {key}: unknown key{nearest(key, keys)}")
    asked = tuple(config.items())
    scale, seeds = str(config.get("scale", "cpu")), config.get("seeds")
    track = str(config.get("track", tracking.NONE))
    if track != tracking.NONE:
        tracking.require(track)
    recipe, arm = (str(config[key]) if key in config else None for key in ("recipe", "arm"))
    scales = sorted({scale for recipe in recipes.values() for scale in recipe.spec["scales"]})
    if recipes and scale not in scales:
        raise UserError(f'--config scale: unknown scale "{scale}"{nearest(scale, scales)}')
    if seeds == AUTO:
        return Choice(scale, None, True, track, recipe, arm, asked)
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise UserError(f"--config seeds: expected a whole number of at least 1 or {AUTO}, got {seeds}")
    return Choice(scale, seeds, False, track, recipe, arm, asked)


def arguments() -> Namespace | None:
    """Snakemake's own command line, parsed by Snakemake; None where it runs as a library."""
    if not is_snakemake(sys.argv[0]):
        return None
    from snakemake.cli import get_argument_parser  # slow, and of no use to the jobs

    return get_argument_parser().parse_known_args(sys.argv[1:])[0]


def runs_jobs(args: Namespace | None) -> bool:
    """Whether jobs will run; as a library Snakemake does not say, so they may."""
    return args is None or not any(getattr(args, mode, None) for mode in LOOKING)


def requested(graph: Graph, chosen: Choice, args: Namespace | None, quickstart: str) -> list[Report | Node]:
    """The reports and nodes that the command line asks for; as a library, all reports of the scale.

    Raises UserError for a target that is neither a rule nor a file that one of them makes.
    """
    targets = (args.targets or ["all"]) if args else ["everything"]
    allowed = OF_ONE.get(targets[0], ()) if len(targets) == 1 else ()
    for key, _ in chosen.asked:
        if key not in (*KEYS, *allowed):
            of = " or ".join(target for target, keys in OF_ONE.items() if key in keys)
            raise UserError(f"--config {key}: goes with target {of} alone; name the recipe as the target")
    return [one for target in targets for one in target_of(graph, chosen, str(target), quickstart)]


def target_of(graph: Graph, chosen: Choice, target: str, quickstart: str) -> list[Report | Node]:
    """What one target asks for; nothing if it is the benchmark or the clean-up. Raises UserError."""
    recipes = graph.recipes
    path = os.path.relpath(target) if "/" in target else target  # as Snakemake reads it
    parts = path.split("/")
    if path in (*BENCHMARKS.values(), "benchmarks", "clean_checkpoints"):
        return []
    if path in ("preflight", "plan"):
        first_node(graph, chosen, path)
        return []
    if parts[0] == "results" and len(parts) > 3:
        return [_file(graph, chosen, parts)]
    if target == "all":
        if quickstart not in recipes:
            raise UserError(f"recipes/{quickstart}.yaml: missing; the quickstart runs it")
        recipes[quickstart].require_scale(chosen.scale, "--config scale")
        return [Report(quickstart, chosen.scale, "quickstart")]
    if target == "everything":
        return [Report(name, chosen.scale, "report") for name in at_scale(recipes, chosen.scale)]
    if target in recipes:
        recipes[target].require_scale(chosen.scale, "--config scale")
        return [Report(target, chosen.scale, "report")]
    if target in INNER:
        raise UserError(f"{target}: the rule of one job; ask for a recipe ({', '.join(recipes)}) or a file")
    raise UserError(f'no target or recipe "{target}"{nearest(target, [*recipes, *TARGETS])}')


def first_node(graph: Graph, chosen: Choice, target: str = "preflight") -> Node:
    """A node of the arm that `chosen` names, of its first seed; without a name. Raises UserError."""
    if chosen.recipe is None:
        raise UserError(f"{target}: --config recipe=… is missing: which recipe is it of?")
    if chosen.recipe not in graph.recipes:
        raise UserError(
            f'--config recipe: unknown recipe "{chosen.recipe}"{nearest(chosen.recipe, [*graph.recipes])}'
        )
    recipe = graph.recipes[chosen.recipe]
    recipe.require_scale(chosen.scale, "--config scale")
    arms = recipe.arms(chosen.scale)
    if chosen.arm not in (None, *arms):
        near = nearest(chosen.arm, arms)
        raise UserError(f'--config arm: unknown arm "{chosen.arm}" at scale {chosen.scale}{near}')
    _, seeds = recipe.selection(chosen.scale, "report", chosen.seeds)
    return Node(recipe.name, chosen.scale, chosen.arm or arms[0], seeds[0], "", "stage")


def check_sound(broken: Mapping[str, UserError], args: Namespace | None, quickstart: str) -> None:
    """Raise the mistake of a recipe that the command line asks for, if one of them has any."""
    for target in (args.targets or ["all"]) if args else ["everything"]:
        parts = (os.path.relpath(target) if "/" in str(target) else str(target)).split("/")
        named = {"all": quickstart, "everything": next(iter(broken), "")}.get(parts[0], parts[0])
        name = parts[1] if parts[0] == "results" and len(parts) > 1 else named
        if name in broken:
            raise broken[name]


def at_scale(recipes: Mapping[str, Recipe], scale: str) -> list[str]:
    """The recipes that have the scale."""
    return [name for name, recipe in recipes.items() if scale in recipe.spec["scales"]]


def _file(graph: Graph, chosen: Choice, parts: list[str]) -> Report | Node:
    """The report or node that makes results/recipe/scale/arm or report/… Raises UserError."""
    target, (_, name, scale, arm) = "/".join(parts), parts[:4]
    if name not in graph.recipes:
        raise UserError(f'{target}: unknown recipe "{name}"{nearest(name, list(graph.recipes))}')
    recipe = graph.recipes[name]
    recipe.require_scale(scale, target)
    if (report := arm.removesuffix(".html")) in REPORTS:
        if arm == report:
            _check_file(target, "/".join(parts[4:]), REPORT_FILES)
        return Report(name, scale, report)
    arms = recipe.arms(scale)
    if arm not in arms:
        near = nearest(arm, [*arms, *REPORTS])
        raise UserError(f'{target}: unknown arm "{arm}" at scale {scale}{near}')
    seed = re.fullmatch(r"seed(\d+)", parts[4]) if len(parts) == 7 else None
    if seed is None:
        raise UserError(f"{target}: no such file; expected results/recipe/scale/arm/seedN/stage/metrics.json")
    return _node(graph, chosen, target, Node(name, scale, arm, int(seed[1]), *_named(parts[5], parts[6])))


def _named(folder: str, file: str) -> tuple[str, str]:
    """Name and kind of the node that makes `folder`/`file` in the folder of a run."""
    return (file.split(".")[0], "eval") if folder == "evals" else (folder, "stage")


def _node(graph: Graph, chosen: Choice, target: str, node: Node) -> Node:
    """The node, if it is there to be asked for and makes the target. Raises UserError."""
    recipe, evaluates = graph.recipes[node.recipe], node.kind == "eval"
    names = (recipe.evaluations if evaluates else recipe.stages)(node.scale, node.arm)
    names = names + (recipe.sensitivity(node.scale, node.arm) if evaluates else [])
    if node.name not in names:
        what = "checkpoint" if evaluates else "stage"
        raise UserError(f'{target}: unknown {what} "{node.name}"{nearest(node.name, names)}')
    _check_file(target, target.rpartition("/")[2], EVAL_FILES if evaluates else STAGE_FILES, node.name)
    _, seeds = recipe.selection(node.scale, "report", LOOKS[-1] if chosen.auto else chosen.seeds)
    pinned = graph.owner(replace(node, seed=seeds[0]))  # its seed may be none of the run's
    if node.seed not in seeds and node != pinned:
        raise UserError(f"{target}: seeds are {seeds[0]} to {seeds[-1]}; ask for more with --config seeds=N")
    owner = graph.owner(node)
    if owner != node:
        raise UserError(f"{target}: the same as {owner.sentinel}; ask for that")
    return node


def _check_file(target: str, file: str, made: Mapping[str, str], checkpoint: str = "") -> None:
    """That a rule makes a file of this name."""
    names = [path.rpartition("/")[2].format(checkpoint=checkpoint) for path in made.values()]
    if file not in names:
        raise UserError(f'{target}: no rule makes "{file}"{nearest(file, names)}')
