"""How long Snakemake plans a grid of jobs, and how much memory that takes.

    python tests/benchmarks/plan_speed.py --out FILE.csv [--grids dpo:4 everything:32]

A grid is a target with its number of seeds. Each is planned by `snakemake -n` in a folder without results, so
that every job is still to be run. A first plan of each target is not timed: it also counts the parameters of
the models, and notes them in the folder. `wall_s` is the time of the whole command, imports included. `cpu_s`
counts all its processes: a second one estimates the hours of the run. `memory_mib` is the largest resident
memory of one of them. `load` is how many processes the machine was running before: with other work to do it
takes longer.

Columns: target, seeds, jobs, metric, value, cores, commit, machine.
"""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from judge_speed import ROOT, spent, write

from encore.runtime import provenance

GRIDS = ("dpo:4", "everything:1", "everything:14", "everything:32")
READ = ("Snakefile", "encore", "recipes", "profiles", "snakemake_logger_plugin_encore")
COLUMNS = ("target", "seeds", "jobs", "metric", "value", "cores", "commit", "machine")
PLANNED = re.compile(r"^planned: (\d+) jobs", re.MULTILINE)


def planned(grid: str, folder: Path) -> tuple[int, dict[str, float]]:
    """Plan a grid in a folder, and return its number of jobs and what the plan took."""
    target, _, seeds = grid.partition(":")
    snakemake = str(Path(sys.executable).with_name("snakemake"))
    command = [snakemake, "-n", target, "--quiet", "--cores", "1", "--config", f"seeds={seeds}"]
    with tempfile.TemporaryFile("w+") as said:
        took = spent(command, folder, said)
        said.seek(0)
        jobs = PLANNED.search(said.read())
    if jobs is None:
        raise SystemExit(f"{' '.join(command)} has not said how many jobs it planned")
    return int(jobs[1]), took


def rows(grids: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield a row for each grid and metric."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in READ:
            (folder / name).symlink_to(ROOT / name)
        for target in {grid.partition(":")[0] for grid in grids}:
            planned(f"{target}:1", folder)
        for grid in grids:
            target, _, seeds = grid.partition(":")
            jobs, took = planned(grid, folder)
            for metric, value in took.items():
                yield {
                    "target": target,
                    "seeds": seeds,
                    "jobs": jobs,
                    "metric": metric,
                    "value": round(value, 1),
                    "cores": os.cpu_count(),
                    "commit": provenance.commit()[0],
                    "machine": provenance.processor(),
                }


def main() -> int:
    """Measure, and write the CSV."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--grids", nargs="+", default=GRIDS)
    options = parser.parse_args()
    measured = [*rows(options.grids)]
    write(options.out, COLUMNS, measured)
    for row in measured:
        print(f"{row['jobs']} jobs of {row['target']}: {row['metric']} {row['value']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
