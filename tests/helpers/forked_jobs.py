"""Stages and evaluations by their ordinary commands, in processes forked with torch loaded."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from stage_runs import FORK, finish

from encore.forecast.trial import Runner


def child(words: Sequence[str], log: Path, trap: Callable[[], None] | None) -> None:
    """One job, its stderr to `log`; does not return."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if trap:
        trap()
    if words[0] == "encore.stages":
        from encore.stages.__main__ import main as run
    else:
        from evals.evaluate import main as run
    os._exit(run(words[1:]))


def forked(trap: Callable[[], None] | None = None) -> Runner:
    """A runner of jobs in processes that have torch loaded; `trap()` runs in each first."""

    def run(words: Sequence[str], threads: int, log: Path) -> int:
        process = FORK.Process(target=child, args=(list(words), log, trap))
        process.start()
        return finish(process)

    return run
