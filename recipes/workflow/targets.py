"""What the command line asks of the workflow, checked before any job starts."""

import logging
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from recipes.errors import UserError, nearest
from recipes.spec.graph import Graph, Node
from recipes.spec.load import INNER, TARGETS
from recipes.spec.recipe import REPORTS, Recipe
from snakemake_logger_plugin_encore import is_snakemake

# What the rules make, beside what is named after a checkpoint.
STAGE_FILES = ("metrics.json", "curve.csv", "provenance.json")
REPORT_FILES = ("table.csv", "claims.csv", "summary.txt")
BENCHMARKS = ("results/benchmarks/grpo_speed.csv", "results/benchmarks/grid_speed.csv")
# Modes of Snakemake that only look: they neither run jobs nor need the folder to themselves.
_LOOKING = ["dryrun", "lint", "list_rules", "list_target_rules", "list_changes", "list_untracked", "summary"]
_LOOKING += ["detailed_summary", "dag", "rulegraph", "filegraph", "d3dag", "print_compilation", "report"]


class Report(NamedTuple):
    recipe: str
    scale: str
    report: str  # of REPORTS

    @property
    def page(self) -> Path:
        return Path(f"results/{self.recipe}/{self.scale}/{self.report}.html")

    @property
    def table(self) -> Path:
        """What the page is made from, and the first of its files to be made."""
        return self.page.with_suffix("") / "table.csv"


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
    if not is_snakemake(sys.argv[0]):
        return None
    from snakemake.cli import get_argument_parser

    return get_argument_parser().parse_known_args(sys.argv[1:])[0]


def runs_jobs(args: Namespace | None) -> bool:
    """Whether jobs will run; as a library Snakemake does not say, so they may."""
    return args is None or not any(getattr(args, mode, None) for mode in _LOOKING)


def asked(graph: Graph, chosen: Choice, args: Namespace | None, quickstart: str) -> list[Report | Node]:
    """The reports and nodes that the command line asks for; as a library, all reports of the scale.

    Raises UserError for a target that is neither a rule nor a file that one of them makes.
    """
    targets = (args.targets or ["all"]) if args else ["everything"]
    return [found for target in targets for found in target_of(graph, chosen, str(target), quickstart)]


def target_of(graph: Graph, chosen: Choice, target: str, quickstart: str) -> list[Report | Node]:
    """What one target asks for; nothing if it is the benchmark or the clean-up.  Raises UserError."""
    recipes = graph.recipes
    path = os.path.relpath(target) if "/" in target else target  # as Snakemake reads it
    parts = path.split("/")
    if path in (*BENCHMARKS, "benchmarks", "clean_checkpoints"):
        return []
    if parts[0] == "results" and len(parts) > 3:
        return [_file(graph, chosen, parts)]
    if target == "all":
        if quickstart not in recipes:
            raise UserError(f"recipes/{quickstart}.yaml: missing; the quickstart runs it")
        _scale(recipes[quickstart], chosen.scale, "--config scale")
        return [Report(quickstart, chosen.scale, "quickstart")]
    if target == "everything":
        here = [name for name, recipe in recipes.items() if chosen.scale in recipe.spec["scales"]]
        return [Report(name, chosen.scale, "report") for name in here]
    if target in recipes:
        _scale(recipes[target], chosen.scale, "--config scale")
        return [Report(target, chosen.scale, "report")]
    if target in INNER:
        raise UserError(f"{target}: the rule of one job; ask for a recipe ({', '.join(recipes)}) or a file")
    raise UserError(f'no target or recipe "{target}"{nearest(target, [*recipes, *TARGETS])}')


def _file(graph: Graph, chosen: Choice, parts: list[str]) -> Report | Node:
    target, (_, name, scale, arm) = "/".join(parts), parts[:4]
    recipes = graph.recipes
    if name not in recipes:
        raise UserError(f'{target}: unknown recipe "{name}"{nearest(name, list(recipes))}')
    recipe = recipes[name]
    _scale(recipe, scale, target)
    if (report := arm.removesuffix(".html")) in REPORTS:
        if arm == report:
            _made(target, "/".join(parts[4:]), REPORT_FILES)
        return Report(name, scale, report)
    arms = recipe.arms(scale)
    if arm not in arms:
        near = nearest(arm, [*arms, *REPORTS])
        raise UserError(f'{target}: unknown arm "{arm}" at scale {scale}{near}')
    _, seeds = recipe.selection(scale, "report", chosen.seeds)
    seed = re.fullmatch(r"seed(\d+)", parts[4]) if len(parts) == 7 else None
    if seed is None:
        raise UserError(f"{target}: no such file; expected results/recipe/scale/arm/seedN/stage/metrics.json")
    kind = "eval" if parts[5] == "evals" else "stage"
    known = recipe.checkpoints(scale, arm) if kind == "eval" else recipe.stages(scale, arm)
    node_name = parts[6].split(".")[0] if kind == "eval" else parts[5]
    if node_name not in known:
        what = "checkpoint" if kind == "eval" else "stage"
        raise UserError(f'{target}: unknown {what} "{node_name}"{nearest(node_name, known)}')
    scores = (f"{node_name}.json", f"{node_name}.samples.jsonl")
    _made(target, parts[6], scores if kind == "eval" else STAGE_FILES)
    node = Node(name, scale, arm, int(seed[1]), node_name, kind)
    pinned = graph.owner(replace(node, seed=seeds[0]))  # its seed may be none of the run's
    if node.seed not in seeds and node != pinned:
        raise UserError(f"{target}: seeds are {seeds[0]} to {seeds[-1]}; ask for more with --config seeds=N")
    owner = graph.owner(node)
    if owner != node:
        raise UserError(f"{target}: the same as {owner.sentinel}; ask for that")
    return node


def _made(target: str, file: str, files: tuple[str, ...]) -> None:
    if file not in files:
        raise UserError(f'{target}: no rule makes "{file}"{nearest(file, list(files))}')


def _scale(recipe: Recipe, scale: str, where: str) -> None:
    scales = list(recipe.spec["scales"])
    if scale not in scales:
        raise UserError(f'{where}: recipe {recipe.name} has no scale "{scale}"{nearest(scale, scales)}')


def show(pages: Iterable[Path]) -> None:
    """The summary and the path of each report that is there, on stdout."""
    for page in pages:
        summary = page.with_suffix("") / "summary.txt"
        if page.exists() and summary.exists():
            print(summary.read_text(encoding="utf-8").rstrip(), page, sep="\n")


class Unchanged(logging.Filter):
    """Shows the reports asked for where Snakemake logs that nothing is to be done: it then runs no hook."""

    def __init__(self, asked: Iterable[Report | Node]) -> None:
        super().__init__()
        self.pages = [one.page for one in asked if isinstance(one, Report)]

    def filter(self, record: logging.LogRecord) -> bool:
        if record.getMessage().startswith("Nothing to be done"):
            show(self.pages)
        return True
