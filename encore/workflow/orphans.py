"""The jobs of an earlier run of this folder that are still in Slurm; they are ended at the workflow's start.

A Snakemake process that is killed leaves its jobs in the queue, and the next process would submit the same
jobs once more. A stage that is ended saves its state (encore.learning.fit), and resumes from it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from encore.errors import UserError

COMMENT = "rule_"  # beginning of the comment that Snakemake's executor gives each of its jobs
PATIENCE = 600.0  # seconds within which the jobs must end
LOOK = 1.0  # seconds between two checks
Ask = Callable[[list[str]], str]


def _ask(command: list[str]) -> str:
    """Return what a command of Slurm prints; "" without Slurm, or if Slurm does not answer."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def of_folder(folder: Path, ask: Ask = _ask) -> list[str]:
    """Return the Slurm ids of this user's Snakemake jobs that work in `folder`, without the present job."""
    rows = (
        line.split("|", 2) for line in ask(["squeue", "--me", "--noheader", "--format=%i|%Z|%k"]).splitlines()
    )
    numbers = [
        row[0] for row in rows if len(row) == 3 and Path(row[1]) == folder and row[2].startswith(COMMENT)
    ]
    return [number for number in numbers if number != os.environ.get("SLURM_JOB_ID")]


def end(folder: Path, ask: Ask = _ask, sleep: Callable[[float], None] = time.sleep) -> None:
    """End the Slurm jobs of an earlier run in `folder`. Raises UserError if they do not end in time.

    The caller must hold the lock of the folder, which shows that no other Snakemake waits for the jobs.
    """
    jobs = of_folder(folder, ask)
    if not jobs:
        return
    of = f"{len(jobs)} job{'s' if jobs[1:] else ''} of an earlier run still in Slurm ({', '.join(jobs)})"
    print(f"{of}: ending, to go on from what was saved", file=sys.stderr, flush=True)
    ask(["scancel", *jobs])
    deadline = time.monotonic() + PATIENCE
    while set(of_folder(folder, ask)) & set(jobs):
        if time.monotonic() > deadline:
            raise UserError(
                f"{of}: not ended in {PATIENCE:.0f} s; run scancel {' '.join(jobs)}, then this again"
            )
        sleep(LOOK)
