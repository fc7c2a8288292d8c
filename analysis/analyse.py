"""From artefacts to numbers.

    python -m analysis.analyse --recipe r1_zero --scale cpu --report report --out results/r1_zero/cpu/report

Writes table.csv, the tables (CSV, Markdown, LaTeX, HTML), figures/ (SVG, PNG) and summary.txt into DIR.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from analysis import claims, figures, summary, table, tables
from recipes import graph
from recipes.errors import UserError, nearest
from recipes.recipe import load_all

REPORTS = ("report", "quickstart")


def arguments(description: str | None, argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line that analyse and report share."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--scale", required=True)
    parser.add_argument("--report", choices=REPORTS, default="report")
    parser.add_argument("--seeds", type=int, help="how many; default: as the recipe says")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


def select(args: argparse.Namespace, root: Path = Path(".")) -> table.Run:
    """The run that a command line names. Raises UserError on a recipe or scale that does not exist."""
    recipes = load_all(root / "recipes")
    if args.recipe not in recipes:
        raise UserError(f'unknown recipe "{args.recipe}"{nearest(args.recipe, list(recipes))}')
    recipe = recipes[args.recipe]
    scales = list(recipe.spec["scales"])
    if args.scale not in scales:
        known = nearest(args.scale, scales)
        raise UserError(f'recipes/{args.recipe}.yaml: unknown scale "{args.scale}"{known}')
    if args.seeds is not None and args.seeds < 1:
        raise UserError(f"--seeds: expected a whole number of at least 1, got {args.seeds}")
    arms, seeds = graph.selection(recipe, args.scale, args.report, args.seeds)
    return table.Run(recipes, args.recipe, args.scale, tuple(arms), tuple(seeds), root)


def analyse(run: table.Run, out: Path) -> list[str]:
    """Everything in `out`; the five lines of summary.txt."""
    out.mkdir(parents=True, exist_ok=True)
    every = table.collect(run)
    every.to_csv(out / "table.csv", index=False)
    numbers = table.final(every)
    verdicts = claims.judge_all(run.spec.get("claims", []), numbers, run.scale, run.seeds)
    arms, spent = tables.arms(run, numbers), tables.cost(table.provenance(run))
    checks, beside = tables.health(table.health(run)), tables.published(run, numbers)
    where = f"{summary.title(run)}, {run.scale} scale"
    tables.write(out, "arms", f"Arms and metrics. {where}", arms, tables.arms_shown(run, arms))
    tables.write(out, "claims", f"Verdicts. {where}", claims.frame(verdicts), tables.verdicts_shown(verdicts))
    tables.write(out, "published", f"Published numbers beside ours. {where}", beside, beside)
    tables.write(out, "health", f"Health checks. {where}", checks, checks)
    tables.write(out, "cost", f"Cost. {where}", spent, tables.cost_shown(spent))
    drawn = figures.draw_all(run, every, verdicts, out / "figures")
    (out / "figures/index.json").write_text(json.dumps([asdict(d) for d in drawn], indent=1) + "\n")
    lines = summary.lines(run, numbers, verdicts)
    (out / "summary.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(__doc__, argv)
    try:
        analyse(select(args), args.out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
