"""Stages and evaluations by their ordinary commands, in processes forked with torch loaded."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

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


def apart(task: Callable[..., Any], *given: Any, trap: Callable[[], None] | None = None) -> Any:
    """Return what `task(run, *given)` does in a forked process, whose jobs `run` has this process fork."""
    here, there = FORK.Pipe()
    process = FORK.Process(target=_answer, args=(there, task, given))
    process.start()
    there.close()
    while "job" in (told := here.recv()):
        here.send(forked(trap)(*told["job"]))
    process.join()
    return told["found"]


def _answer(there: Connection, task: Callable[..., Any], given: Sequence[Any]) -> None:
    def run(words: Sequence[str], threads: int, log: Path) -> int:
        there.send({"job": (words, threads, log.absolute())})
        status: int = there.recv()
        return status

    there.send({"found": task(run, *given)})


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Until the block ends, processes are forked from a server whose libraries read these as imported."""
    server = forkserver._forkserver  # the only one that multiprocessing has
    server._stop()
    with mock.patch.dict(os.environ, variables):
        server.ensure_running()
    try:
        yield
    finally:
        server._stop()  # the next fork starts another one, in the environment of then
