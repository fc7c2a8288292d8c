"""What the command line asks of the workflow, checked before any job starts."""

import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes import graph
from recipes.errors import UserError, nearest
from recipes.recipe import Recipe

REPORTS = ("report", "quickstart")
# Modes of Snakemake that only look: they neither run jobs nor need the folder to themselves.
_LOOKING = ["dryrun", "lint", "list_rules", "list_target_rules", "list_changes", "list_untracked", "summary"]
_LOOKING += ["detailed_summary", "dag", "rulegraph", "filegraph", "d3dag", "print_compilation", "report"]


@dataclass(frozen=True)
class Choice:
    """`--config scale=… seeds=…`"""

    scale: str
    seeds: int | None  # None: as many as the recipe says


def choice(recipes: Mapping[str, Recipe], config: Mapping[str, Any]) -> Choice:
    """The run's choices.  Raises UserError for any other key, an unknown scale, no number of seeds."""
    for key in config:
        if key not in ("scale", "seeds"):
            raise UserError(f"--config {key}: unknown key{nearest(key, ['scale', 'seeds'])}")
    scale, seeds = str(config.get("scale", "cpu")), config.get("seeds")
    scales = sorted({scale for recipe in recipes.values() for scale in recipe.spec["scales"]})
    if recipes and scale not in scales:
        raise UserError(f'--config scale: unknown scale "{scale}"{nearest(scale, scales)}')
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise UserError(f"--config seeds: expected a whole number of at least 1, got {seeds}")
    return Choice(scale, seeds)


def arguments() -> Namespace | None:
    """Snakemake's own command line, parsed by Snakemake; None where it runs as a library."""
    if Path(sys.argv[0]).name != "snakemake":
        return None
    from snakemake.cli import get_argument_parser

    return get_argument_parser().parse_known_args(sys.argv[1:])[0]


def runs_jobs(args: Namespace | None) -> bool:
    return args is not None and not any(getattr(args, mode, None) for mode in _LOOKING)


def check_target(recipes: Mapping[str, Recipe], chosen: Choice, target: str, rules: Iterable[str]) -> None:
    """Raise UserError unless `target` is one of the rules, or a file that one of them makes."""
    parts = target.split("/")
    if parts[0] == "results" and len(parts) > 3:
        return _check_file(recipes, chosen, parts)
    if target in recipes:
        _scale(recipes[target], chosen.scale, "--config scale")
    elif target not in rules:
        known = [name for name in rules if name not in ("train", "evaluate", "analyse", "report")]
        raise UserError(f'no target or recipe "{target}"{nearest(target, known)}')


def _check_file(recipes: Mapping[str, Recipe], chosen: Choice, parts: list[str]) -> None:
    target, (_, name, scale, arm) = "/".join(parts), parts[:4]
    if name not in recipes:
        raise UserError(f'{target}: unknown recipe "{name}"{nearest(name, list(recipes))}')
    recipe = recipes[name]
    _scale(recipe, scale, target)
    if arm.removesuffix(".html") in REPORTS:
        return
    arms = recipe.arms(scale)
    if arm not in arms:
        raise UserError(f'{target}: unknown arm "{arm}" at scale {scale}{nearest(arm, [*arms, *REPORTS])}')
    _, seeds = graph.selection(recipe, scale, "report", chosen.seeds)
    seed = re.fullmatch(r"seed(\d+)", parts[4]) if len(parts) > 6 else None
    if seed is None:
        raise UserError(f"{target}: no such file; expected results/recipe/scale/arm/seedN/stage/metrics.json")
    if int(seed[1]) not in seeds:
        raise UserError(f"{target}: seeds are 0 to {len(seeds) - 1}; ask for more with --config seeds=N")
    kind = "eval" if parts[5] == "evals" else "stage"
    known = (graph.checkpoints if kind == "eval" else graph.stages)(recipe, scale, arm)
    node_name = parts[6].split(".")[0] if kind == "eval" else parts[5]
    if node_name not in known:
        what = "checkpoint" if kind == "eval" else "stage"
        raise UserError(f'{target}: unknown {what} "{node_name}"{nearest(node_name, known)}')
    node = graph.Node(name, scale, arm, int(seed[1]), node_name, kind)
    owner = graph.owner(recipes, node)
    if owner != node:
        raise UserError(f"{target}: the same as {graph.sentinel(owner)}; ask for that")


def _scale(recipe: Recipe, scale: str, where: str) -> None:
    scales = list(recipe.spec["scales"])
    if scale not in scales:
        raise UserError(f'{where}: recipe {recipe.name} has no scale "{scale}"{nearest(scale, scales)}')
