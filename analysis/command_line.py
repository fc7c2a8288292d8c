"""The command line that analysis.look, analysis.report and analysis.publish share."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from analysis.numbers.run import Run
from encore.errors import UserError
from encore.recipe import looks
from encore.recipe.document import REPORTS
from encore.recipe.graph import Graph
from encore.recipe.load import load_named
from encore.recipe.recipe import Recipe
from encore.runtime import suite
from encore.runtime.environment import stop_in_one_line
from encore.workflow.choice import choice, selection


def main(
    description: str | None, work: Callable[[Run, Path, str], object], argv: Sequence[str] | None
) -> int:
    """Call `work` with the run, the path --out and the report that the command line names.

    Return the exit status.
    """
    args = arguments(description, argv)
    if argv is None:  # the process belongs to this command
        stop_in_one_line(lambda line: None, lambda: "the same command writes all of it again")
    return status(lambda: work(_select(args), args.out, args.report))


def status(work: Callable[[], object]) -> int:
    """Call `work` and return 0, or 2 after a UserError, which is printed in one line."""
    try:
        work()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def arguments(description: str | None, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line; its help begins with the first line of `description`."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--recipe", required=True, help="a name, or the file of one that is not in recipes/")
    parser.add_argument("--scale", required=True)
    parser.add_argument("--report", choices=REPORTS, default="report")
    parser.add_argument(
        "--seeds",
        help="how many, or which (0,2), or auto: as the looks on disk have them; default: as the recipe says",
    )
    parser.add_argument("--arms", help="of --report chosen: which, such as a,b; default: all")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


def _select(args: argparse.Namespace, root: Path = Path(".")) -> Run:
    """Return the run that the arguments name. Raises UserError if its recipe or scale does not exist."""
    graph, recipe, user_file = load_named(args.recipe, args.scale, root)
    if args.seeds == looks.AUTO and args.report == "report" and recipe.claims(args.scale):
        return replace(_by_looks(graph, recipe, args.scale, root), file=user_file)
    asked = {key: getattr(args, key) for key in ("scale", "seeds", "arms") if getattr(args, key)}
    if str(asked.get("seeds")).isdecimal():
        asked["seeds"] = int(asked["seeds"])
    try:
        arms, seeds = selection(recipe, args.scale, args.report, choice({}, asked))
    except UserError as error:
        raise UserError(str(error).replace("--config ", "--")) from None
    return Run(graph, recipe.name, args.scale, tuple(arms), tuple(seeds), root, file=user_file)


def _by_looks(graph: Graph, recipe: Recipe, scale: str, root: Path) -> Run:
    """Return the run with the seeds that the looks on disk asked for. Raises UserError without any look."""
    taken = looks.on_disk(recipe.name, scale, root)
    if not taken:
        raise UserError(
            f"--seeds {looks.AUTO}: no look was taken at recipe {recipe.name}, scale {scale}, in "
            f"{root.resolve()}; run "
            f"{suite.snakemake()} --cores {recipe.name} --config scale={scale} seeds=auto first"
        )
    arms, seeds = recipe.selection(scale, "report", taken[-1].seeds)
    counts = looks.seeds_of(arms, taken[:-1])
    return Run(graph, recipe.name, scale, tuple(arms), tuple(seeds), root, counts)
