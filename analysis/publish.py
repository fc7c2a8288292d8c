"""From a report to the record of it that is kept in git.

    python -m analysis.publish --recipe r1_zero --scale cpu --seeds 5 --out results/published/r1_zero-cpu

Writes the report's tables as CSV, numbers.csv (the final numbers of every arm and seed) and runs.csv (commit,
versions, hardware, time and tokens of every stage; the commit holds the recipe as it was).
"""

import json
import shutil
import sys
from pathlib import Path

import pandas as pd

from analysis import command_line
from analysis.numbers import table
from analysis.numbers.run import Run
from analysis.preferences import section
from recipes.errors import UserError

TABLES = ("arms", "claims", "objectives", "published", "health", "cost")
IF_THERE = tuple(kind.name for kind in section.TABLES)
KEY = ["arm", "seed", "node", "metric"]


def publish(run: Run, out: Path, report: str) -> None:
    """Write the record of a run, taken from its `report` (or `quickstart`), into `out`."""
    folder = run.root / f"results/{run.name}/{run.scale}/{report}"
    if not (folder / "table.csv").exists():
        raise UserError(f"{folder}/table.csv: missing; run `snakemake --cores {run.name}` first")
    runs = table.provenance(run)
    unnamed = runs[runs.commit.isna() | runs.dirty.astype(bool)]
    if len(unnamed):
        first = unnamed.iloc[0]
        how = "outside git" if pd.isna(first.commit) else f"from files that differ from {first.commit[:12]}"
        where = f"{first.arm}/seed{first.seed}/{first.stage}"
        raise UserError(f"{where}: trained {how}; a record must name the code that made it")
    out.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        shutil.copyfile(folder / f"{name}.csv", out / f"{name}.csv")
    for name in IF_THERE:
        if (folder / f"{name}.csv").exists():
            shutil.copyfile(folder / f"{name}.csv", out / f"{name}.csv")
        else:
            (out / f"{name}.csv").unlink(missing_ok=True)
    numbers = worth_keeping(table.final(pd.read_csv(folder / "table.csv")))
    numbers.drop(columns=["step", "source"]).to_csv(out / "numbers.csv", index=False)
    for column in ("versions", "hardware"):
        runs[column] = [json.dumps(value, sort_keys=True) for value in runs[column]]
    runs.to_csv(out / "runs.csv", index=False)


def worth_keeping(numbers: pd.DataFrame) -> pd.DataFrame:
    """Numbers that arms or seeds share once, under their owner; `last/…` only without its `last_fifth/…`."""
    numbers = numbers.drop_duplicates(["source", "metric"])
    averaged = numbers.assign(metric=numbers.metric.str.replace(r"^last/", "last_fifth/", regex=True))
    there = pd.MultiIndex.from_frame(averaged[KEY]).isin(pd.MultiIndex.from_frame(numbers[KEY]))
    return numbers[~(numbers.metric.str.startswith("last/") & there)]


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, publish, None))
