"""From a report to the record of it that is kept in git.

    python -m analysis.publish --recipe r1_zero --scale cpu --seeds 5 --out results/published/r1_zero-cpu

Writes the report's tables as CSV, numbers.csv (every final number of every arm and seed) and runs.csv (commit,
versions, hardware, time and tokens of every stage; the commit holds the recipe as it was).
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis import table
from analysis.analyse import arguments, select
from recipes.errors import UserError

TABLES = ("arms", "claims", "published", "health", "cost")


def publish(run: table.Run, report: Path, out: Path) -> None:
    """Write the record of a run, whose report lies in the folder `report`, into `out`."""
    if not (report / "table.csv").exists():
        raise UserError(f"{report}/table.csv: missing; run `snakemake --cores {run.name}` first")
    runs = table.provenance(run)
    if runs.dirty.any():
        changed = runs[runs.dirty.astype(bool)].iloc[0]
        raise UserError(
            f"{changed.arm}/seed{changed.seed}/{changed.stage}: trained from files that differ from commit "
            f"{changed.commit[:12]}; a record must name the code that made it"
        )
    out.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        shutil.copyfile(report / f"{name}.csv", out / f"{name}.csv")
    final = table.final(pd.read_csv(report / "table.csv"))
    final.drop(columns=["step", "source"]).to_csv(out / "numbers.csv", index=False)
    for column in ("versions", "hardware"):
        runs[column] = [json.dumps(value, sort_keys=True) for value in runs[column]]
    runs.to_csv(out / "runs.csv", index=False)


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(__doc__, argv)
    try:
        run = select(args)
        publish(run, run.root / f"results/{run.name}/{run.scale}/{args.report}", args.out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
