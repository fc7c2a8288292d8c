"""Join two records of a recipe, for seeds that ran later or on another machine.

    python -m analysis.publish --recipe gdpo --scale cpu --report chosen --seeds 108,109 --out parts/gdpo-cpu
    python -m analysis.join results/published/gdpo-cpu parts/gdpo-cpu

The first command writes the record of the seeds that ran here. The second writes all seeds into the first
folder, with the claims judged anew; no run is needed. The page goes on to show the completions of the
first folder, and the tables that come from them, such as win rates. A claim counts as registered if both
records registered it. The second record may lack arms: a run of `--config claims=… seeds=108,109` has those
alone that the claims compare, and other claims stay as they are.

Two records are refused if both have a seed, if the second has an arm that the first lacks, if their seeds
share a base model or problems, or if they have the key `sensitivity`.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from analysis import command_line, publish
from analysis.arms import uncertainty
from analysis.numbers.recorded import CURVES, NUMBERS, PACKAGES, RUNS, judged, read_record, with_curves, write
from analysis.numbers.run import Run
from analysis.preferences.build import FROM_COMPLETIONS
from analysis.provenance import health, jobs, registration
from analysis.results import build
from analysis.verdicts import reversals
from encore.errors import UserError
from encore.recipe.files import REGISTERED
from encore.recipe.graph import Graph
from encore.recipe.load import load_all

SENSITIVITY = "sensitivity.csv"
HEALTH = "health.csv"


def join(record: Path, part: Path, graph: Graph) -> None:
    """Write into the folder `record` the seeds of both records, and the pages about it if it is published.

    Raises UserError if the two cannot be joined, or if a reversed claim has no cause; `record` is then as
    before.
    """
    with TemporaryDirectory() as temporary:
        joined = Path(temporary) / record.name
        joined.mkdir()
        _write_joined(record, part, joined, graph)
        for path in record.glob("*.csv*"):
            path.unlink()
        shutil.copytree(joined, record, dirs_exist_ok=True)
    if record.parent.resolve() == Path(publish.RECORDS).resolve():
        publish.remember([record])
        publish.write_index(record.parent, graph)


def _write_joined(record: Path, part: Path, joined: Path, graph: Graph) -> None:
    """Write the joined record into the empty folder `joined`."""
    runs, numbers = zip(*[_record_of(folder, graph) for folder in (record, part)], strict=True)
    _check_fit(record, part, runs, numbers)
    write(pd.concat(numbers), joined / NUMBERS)
    if (record / CURVES).exists():
        parts = [pd.read_csv(folder / CURVES, low_memory=False) for folder in (record, part)]
        write(pd.concat(parts), joined / CURVES)
    trained = pd.concat([jobs.jobs(run) for run in runs], ignore_index=True)
    jobs.write(trained, joined / RUNS)
    checks = [pd.read_csv(run.artefact(HEALTH), dtype=str, keep_default_na=False) for run in runs]
    health.joined(checks).to_csv(joined / HEALTH, index=False)
    registered = registration.joined([registration.of_run(run, jobs.jobs(run)) for run in runs])
    registered.to_csv(joined / f"{registration.NAME}.csv", index=False)
    kept = {publish.SHOWN, REGISTERED, *(f"{name}.csv" for name in FROM_COMPLETIONS)}
    for file in kept & {path.name for path in record.iterdir()}:
        shutil.copyfile(record / file, joined / file)
    run, table = with_curves(joined, graph)
    results = build(run, table)
    reversals.check_reversals(run.recipe, results.verdicts.last)
    publish.write_tables(results, joined)
    (joined / PACKAGES).write_text(publish.packages(trained), encoding="utf-8")


def _record_of(folder: Path, graph: Graph) -> tuple[Run, pd.DataFrame]:
    """Return the run of a record, with its judged seeds only, and the record's numbers of all seeds.

    Raises UserError if the folder is not a record of a known recipe.
    """
    if folder.name.rpartition("-")[0] not in graph.recipes or not (folder / NUMBERS).exists():
        raise UserError(f"{folder}: expected the folder of a record, called RECIPE-SCALE, with {NUMBERS}")
    run, numbers = read_record(folder, graph)
    return replace(judged(run), record=folder), numbers


def _check_fit(record: Path, part: Path, runs: Sequence[Run], numbers: Sequence[pd.DataFrame]) -> None:
    """Raise UserError if the two records cannot be joined."""
    if record.name != part.name:
        raise UserError(f"{part}: expected a record called {record.name}, as {record}")
    twice = sorted({*runs[0].seeds} & {*runs[1].seeds})
    if twice:
        raise UserError(f"{part}: {record} has seed {', '.join(map(str, twice))} already")
    if other := sorted({*numbers[1].arm} - {*numbers[0].arm}):
        raise UserError(f"{part}: {record} has other arms, without {', '.join(other)}")
    for run in runs:
        if shared := uncertainty.common(run):
            raise UserError(f"{run.record}: its seeds share {' and '.join(shared)}; run all seeds together")
        if run.artefact(SENSITIVITY).exists():
            words = "cannot be made without the completions of all seeds; run all seeds together"
            raise UserError(f"{run.artefact(SENSITIVITY)}: {words}")


def main(argv: Sequence[str] | None = None) -> int:
    """Join the records that the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("record", type=Path, help="the record that takes the seeds, RECIPE-SCALE")
    parser.add_argument("part", type=Path, help="the record that gives them, a folder of the same name")
    args = parser.parse_args(argv)
    return command_line.status(lambda: join(args.record, args.part, Graph(load_all())))


if __name__ == "__main__":
    sys.exit(main())
