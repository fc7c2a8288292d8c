"""Stages of every kind killed by SIGKILL, again and again: the bits at the end are those of one never killed.

    python tests/faults/kills.py 200      (part of what `snakemake --cores faults` runs)

Goes on until the table has so many kills in all, and so can itself be stopped and started again. A stage is
killed up to `CHAIN` times before it may end: each half before an operation on a file, of a phase drawn at
random, half after a random time of computing. Writes results/published/kills.csv: kind and phase, how many
kills, how many of them a run that ended with other bits had. Exit status: 1 if there were any.
"""

import csv
import io
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("tests/helpers", "tests/encore/stages", "tests/faults", ".")]

import kill_points  # noqa: E402
import stage_runs  # noqa: E402
from fault_cases import CASES, Case, fresh, prepared  # noqa: E402

TABLE = ROOT / "results/published/kills.csv"
COLUMNS = ("kind", "phase", "kills", "other_bits")
CHAIN = 5
MODULES = [
    f"encore.stages.{kind}"
    for kind in ("sft", "dpo", "kto", "ppo", "distillation", "reward_model", "policy_gradient")
]
Counts = Counter[tuple[str, str, bool]]  # kind, phase, whether the bits at the end were others


class Subject:
    """A case with the outputs and the file operations of a run that was not killed."""

    def __init__(self, case: Case, folder: Path):
        self.case, self.folder, self.log = case, folder, folder / "operations.txt"
        self.ready = prepared(case, folder / "ready")
        whole = fresh(self.ready, folder / "whole")
        assert self.run(whole, partial(kill_points.watch, str(self.log), 0)) == 0, _said(whole)
        self.expected = case.outputs(whole)
        self.operations = self.log.read_text().splitlines()
        self.seconds = float(self.operations[-1].split()[0])  # of computing, up to the last of them

    def run(self, folder: Path, trap: Callable[[], None]) -> int:
        process = self.case.start(folder, trap)
        process.join(600)
        assert process.exitcode is not None, "the stage hangs"
        return process.exitcode

    def point(self, rng: random.Random) -> Callable[[], None]:
        """A trap at a random point."""
        if rng.random() < 0.5:
            return partial(kill_points.after_computing, str(self.log), rng.uniform(0, self.seconds))
        phase = rng.choice(sorted({kill_points.phase(one) for one in self.operations}))
        numbers = [i for i, one in enumerate(self.operations, 1) if kill_points.phase(one) == phase]
        return partial(kill_points.watch, str(self.log), rng.choice(numbers))

    def chain(self, rng: random.Random, most: int) -> tuple[list[str], bool]:
        """The phases in which one run was killed, and whether it ended with other bits."""
        folder, phases = fresh(self.ready, self.folder / "killed"), []
        while len(phases) < most:
            status = self.run(folder, self.point(rng))
            assert status in (0, -9), _said(folder)
            if status == 0:
                break
            last = self.log.read_text().splitlines()[-1]
            phases.append(kill_points.phase(last))
            # as Snakemake does with the output of a job that failed
            for name in ("metrics.json", "curve.csv", "provenance.json", "after.json", "after.samples.jsonl"):
                (folder / f"results/{self.case.kind}" / name).unlink(missing_ok=True)
        else:
            assert self.run(folder, partial(kill_points.watch, str(self.log), 0)) == 0, _said(folder)
        return phases, self.case.outputs(folder) != self.expected


def read(table: Path) -> Counts:
    """The counts of a table; none where there is no table."""
    counts: Counts = Counter()
    if table.exists():
        for row in csv.DictReader(io.StringIO(table.read_text())):
            place, others = (row["kind"], row["phase"]), int(row["other_bits"])
            counts[*place, True] += others
            counts[*place, False] += int(row["kills"]) - others
    return +counts


def text(counts: Counts) -> str:
    """The table, a row a kind and phase."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for kind, phase in sorted({(kind, phase) for kind, phase, _ in counts}):
        others = counts[kind, phase, True]
        writer.writerow((kind, phase, counts[kind, phase, False] + others, others))
    return out.getvalue()


def add(counts: Counts, wanted: int, keep: Callable[[Counts], None], names: list[str], seed: int) -> None:
    """Kill until there are `wanted` in all, the kinds in turn; `keep` is called after each chain."""
    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="encore-kills-"))
    try:
        subjects: dict[str, Subject] = {}
        while counts.total() < wanted:
            kind = min(names, key=lambda name: sum(n for place, n in counts.items() if place[0] == name))
            if kind not in subjects:
                subjects[kind] = Subject(CASES[kind], folder / kind)
            phases, others = subjects[kind].chain(rng, min(CHAIN, wanted - counts.total()))
            counts.update((kind, phase, others) for phase in phases)
            print(f"{kind}: killed {len(phases)} times; {counts.total()} of {wanted}", flush=True)
            keep(counts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _said(folder: Path) -> str:
    return (folder / "err.txt").read_text()[-4000:]


def main() -> int:
    counts = read(TABLE)
    stage_runs.FORK.set_forkserver_preload(
        [*stage_runs.PRELOAD, *MODULES, "evals.measure", "analysis.report"]
    )

    def keep(now: Counts) -> None:
        TABLE.write_text(text(now))

    add(counts, int(sys.argv[1]), keep, [*CASES], seed=counts.total())
    return int(any(others for _, _, others in counts))


if __name__ == "__main__":
    sys.exit(main())
