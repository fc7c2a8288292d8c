"""The targets that the command line asks for, checked before any job starts."""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace

from encore.errors import UserError, nearest
from encore.recipe.chosen import first_node
from encore.recipe.document import CHOSEN, REPORTS
from encore.recipe.graph import Graph, Node
from encore.recipe.load import INNER, TARGETS
from encore.recipe.looks import LOOKS
from encore.recipe.recipe import Recipe
from encore.workflow.choice import KEYS, OF_ONE, Choice, selection
from encore.workflow.outputs import BENCHMARKS, EVAL_FILES, REPORT_FILES, STAGE_FILES, Report
from snakemake_logger_plugin_encore import is_snakemake

# Snakemake's options that run no jobs, so that the folder need not be locked
LOOKING = ["dryrun", "lint", "list_rules", "list_target_rules", "list_changes", "list_untracked", "summary"]
LOOKING += ["detailed_summary", "dag", "rulegraph", "filegraph", "d3dag", "print_compilation", "report"]


def arguments() -> Namespace | None:
    """Return Snakemake's command line, parsed by Snakemake; None if Snakemake is used as a library."""
    if not is_snakemake(sys.argv[0]):
        return None
    # imported here, because it is slow to import and jobs do not need it
    from snakemake.cli import get_argument_parser

    return get_argument_parser().parse_known_args(sys.argv[1:])[0]


def runs_jobs(args: Namespace | None) -> bool:
    """Return whether jobs will run; True if there is no command line (None), which would say so."""
    return args is None or not any(getattr(args, mode, None) for mode in LOOKING)


def requested(graph: Graph, chosen: Choice, args: Namespace | None, quickstart: str) -> list[Report | Node]:
    """Return the reports and nodes that the command line asks for; without one, all reports of the scale.

    Raises UserError for a target that is neither a rule nor a file that a rule makes.
    """
    targets = (args.targets or ["all"]) if args else ["everything"]
    allowed = OF_ONE.get(targets[0], ()) if len(targets) == 1 else ()
    for key, _ in chosen.asked:
        if key not in (*KEYS, *allowed) and not (key == "recipe" and chosen.file):
            of = " or ".join(target for target, keys in OF_ONE.items() if key in keys)
            raise UserError(
                f"--config {key}: is only for target {of}; here name the recipe itself as the target"
            )
    for target in targets:
        if chosen.part[1] > 1 and target not in (*graph.recipes, "everything"):
            raise UserError(f"--config part: goes with a recipe or everything, not with {target}")
    return [request for target in targets for request in target_of(graph, chosen, str(target), quickstart)]


def target_of(graph: Graph, chosen: Choice, target: str, quickstart: str) -> list[Report | Node]:
    """Return the reports and nodes of a target; [] for a target that needs none, such as `plan`.

    Raises UserError if the target is unknown.
    """
    recipes = graph.recipes
    path = os.path.relpath(target) if "/" in target else target  # in the form in which Snakemake reads it
    parts = path.split("/")
    if path in (*BENCHMARKS.values(), "benchmarks", "clean_checkpoints", "faults", "gallery"):
        return []
    if path in ("preflight", "plan"):
        first_node(graph, chosen.recipe, chosen.scale, chosen.arm, chosen.seeds, path)
        return []
    if parts[0] == "results" and len(parts) > 3:
        return [_file(graph, chosen, parts)]
    if target == "all":
        if chosen.recipe and chosen.recipe not in recipes:
            near = nearest(chosen.recipe, [*recipes])
            raise UserError(f'--config recipe: unknown recipe "{chosen.recipe}"{near}')
        first = chosen.recipe or quickstart
        if first not in recipes:
            raise UserError(f"recipes/{first}: missing; the quickstart runs it")
        report = CHOSEN if chosen.report == CHOSEN else "quickstart"
        return [_report(recipes[first], chosen, report)]
    if target == "everything":
        return [_report(recipes[name], chosen, chosen.report) for name in at_scale(recipes, chosen.scale)]
    if target in recipes:
        return [_report(recipes[target], chosen, chosen.report)]
    if target in INNER:
        raise UserError(f"{target}: a rule of single jobs; ask for a recipe ({', '.join(recipes)}) or a file")
    raise UserError(f'no target or recipe "{target}"{nearest(target, [*recipes, *TARGETS])}')


def _report(recipe: Recipe, chosen: Choice, report: str) -> Report:
    """Return a recipe's report. Raises UserError if the recipe lacks the scale or the chosen parts."""
    recipe.require_scale(chosen.scale, "--config scale")
    selection(recipe, chosen.scale, report, chosen)
    return Report(recipe.name, chosen.scale, report)


def check_sound(broken: Mapping[str, UserError], args: Namespace | None, quickstart: str) -> None:
    """Raise the mistake of a broken recipe if the command line asks for this recipe."""
    for target in (args.targets or ["all"]) if args else ["everything"]:
        parts = (os.path.relpath(target) if "/" in str(target) else str(target)).split("/")
        named = {"all": quickstart, "everything": next(iter(broken), "")}.get(parts[0], parts[0])
        name = parts[1] if parts[0] == "results" and len(parts) > 1 else named
        if name in broken:
            raise broken[name]


def at_scale(recipes: Mapping[str, Recipe], scale: str) -> list[str]:
    """Return the recipes with claims at the scale. Base models and sweeps of dials have none."""
    return [name for name, recipe in recipes.items() if scale in recipe.scales and recipe.document.claims]


def _file(graph: Graph, chosen: Choice, parts: list[str]) -> Report | Node:
    """Return the report or node to which a file in results/recipe/scale/ belongs.

    `parts` is the file's path, split at each slash. Raises UserError if no rule makes the file.
    """
    target, (_, name, scale, arm) = "/".join(parts), parts[:4]
    if name not in graph.recipes:
        raise UserError(f'{target}: unknown recipe "{name}"{nearest(name, list(graph.recipes))}')
    recipe = graph.recipes[name]
    recipe.require_scale(scale, target)
    if (report := arm.removesuffix(".html")) in REPORTS:
        if (report == CHOSEN) != (chosen.report == CHOSEN):
            raise UserError(f"{target}: --config arms=…, claims=… or seeds=0,2 go with {CHOSEN}.html alone")
        if arm == report:
            _check_file(target, "/".join(parts[4:]), REPORT_FILES)
        return _report(recipe, replace(chosen, scale=scale), report)
    arms = recipe.arms(scale)
    if arm not in arms:
        near = nearest(arm, [*arms, *REPORTS])
        raise UserError(f'{target}: unknown arm "{arm}" at scale {scale}{near}')
    seed = re.fullmatch(r"seed(\d+)", parts[4]) if len(parts) == 7 else None
    if seed is None:
        raise UserError(f"{target}: no such file; expected results/recipe/scale/arm/seedN/stage/metrics.json")
    return _node(graph, chosen, target, Node(name, scale, arm, int(seed[1]), *_named(parts[5], parts[6])))


def _named(folder: str, file: str) -> tuple[str, str]:
    """Return name and kind of the node that makes `folder`/`file` in results/recipe/scale/arm/seedN."""
    return (file.split(".")[0], "eval") if folder == "evals" else (folder, "stage")


def _node(graph: Graph, chosen: Choice, target: str, node: Node) -> Node:
    """Return the node. Raises UserError unless the recipe has the node and the node makes the target."""
    recipe, evaluates = graph.recipes[node.recipe], node.kind == "eval"
    names = (recipe.evaluations if evaluates else recipe.stages)(node.scale, node.arm)
    names = names + (recipe.sensitivity(node.scale, node.arm) if evaluates else [])
    if node.name not in names:
        what = "checkpoint" if evaluates else "stage"
        raise UserError(f'{target}: unknown {what} "{node.name}"{nearest(node.name, names)}')
    _check_file(target, target.rpartition("/")[2], EVAL_FILES if evaluates else STAGE_FILES, node.name)
    _, seeds = recipe.selection(node.scale, "report", LOOKS[-1] if chosen.auto else chosen.seeds)
    pinned = graph.owner(replace(node, seed=seeds[0]))  # its seed may differ from the run's seeds
    if node.seed not in seeds and node != pinned:
        raise UserError(f"{target}: seeds are {seeds[0]} to {seeds[-1]}; ask for more with --config seeds=N")
    owner = graph.owner(node)
    if owner != node:
        raise UserError(f"{target}: it is the same as {owner.sentinel}; ask for this file")
    return node


def _check_file(target: str, file: str, made: Mapping[str, str], checkpoint: str = "") -> None:
    """Raise UserError unless a rule makes a file of this name."""
    names = [path.rpartition("/")[2].format(checkpoint=checkpoint) for path in made.values()]
    if file not in names:
        raise UserError(f'{target}: no rule makes "{file}"{nearest(file, names)}')
