"""A pool of sandboxes that are kept ready to run programs, and that return the values of their calls.

One thread starts all sandboxes and waits for them, because a sandbox dies with the thread that started it.
"""

import base64
import json
import logging
import os
import selectors
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from encore.errors import UserError
from encore.sandbox.bubblewrap import bare, command
from encore.sandbox.seccomp import instructions
from encore.sandbox.values import Failed, read_values

GRACE = 3.0  # seconds beyond a program's limit after which its sandbox counts as lost
STARTS_WITHIN = 60.0  # seconds within which a sandbox must start
LONGEST_PROGRAM = 1 << 18  # characters of the longest program
SHORT = 0.5  # seconds of wall time that each of many programs gets at first

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """The limits of a program. `wall`, `cpu`: seconds; `memory`, `file`, `output`: bytes.

    CPU time, and so the verdict, is the same on a busy machine; `wall` ends programs that only sleep.
    `budget`: seconds of wall time for all programs of one call of `Pool.run`.
    """

    wall: float = 10.0
    budget: float = 30.0
    cpu: int = 2
    memory: int = 512 << 20
    file: int = 1 << 20
    output: int = 1 << 16  # bytes of all its values
    descriptors: int = 32


@dataclass(frozen=True)
class Job:
    """A program, and the expressions to evaluate after it, which may use the program's names."""

    program: str
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """The values (calls,) of a program's calls, with `Failed` for a missing value.

    `ended`: how the program ended: done, time, output (too much), lost, too long, or the name of a signal.
    """

    values: tuple[Any, ...]
    ended: str


class Sandbox:
    """A process of inside.py, and the part of its answer that was read so far."""

    def __init__(self, limits: Limits, libraries: Sequence[str] = ()) -> None:
        """Start the process. Raises UserError if it does not start."""
        folders = _packages() if libraries else []
        self.home = tempfile.TemporaryDirectory() if bare(os.environ) else None
        self.process = subprocess.Popen(
            command(os.environ, folders),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=self.home.name if self.home else "/",
            # sets have the same order in every sandbox; libraries start no threads, which no fork copies
            env={"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore", "OPENBLAS_NUM_THREADS": "1"},
        )
        self.answer, self.index, self.deadline = b"", -1, time.monotonic() + STARTS_WITHIN
        self.send(_settings(limits) | {"folders": folders, "libraries": [*libraries]})
        with selectors.DefaultSelector() as ready:
            ready.register(self.out, selectors.EVENT_READ)
            while self.received() is None:
                if not ready.select(self.deadline - time.monotonic()) or not self.more():
                    self.process.kill()
                    assert self.process.stderr
                    said = self.process.stderr.read().decode(errors="replace").strip().splitlines()
                    self.close()
                    why = said[-1] if said else "it says nothing"
                    raise UserError(f"sandbox: bubblewrap does not start here: {why}")
        self.answer = b""

    @property
    def out(self) -> int:
        assert self.process.stdout
        return self.process.stdout.fileno()

    def send(self, value: Any) -> bool:
        """Send a value, and return False if the process no longer reads."""
        body = json.dumps(value).encode()
        assert self.process.stdin
        try:
            with memoryview(struct.pack("<I", len(body)) + body) as left:
                sent = 0
                while sent < len(left):
                    sent += self.process.stdin.write(left[sent:]) or 0
        except OSError:
            return False
        return True

    def more(self) -> bool:
        """Read the available part of the answer, and return False if the process has closed its output."""
        part = os.read(self.out, 1 << 16)
        self.answer += part
        return bool(part)

    def received(self) -> Any:
        """Return the decoded answer if all of it has arrived, else None."""
        if len(self.answer) < 4 or len(self.answer) < 4 + struct.unpack("<I", self.answer[:4])[0]:
            return None
        return json.loads(self.answer[4:])

    def close(self) -> None:
        """Kill the process and all that is in it."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        self.process.wait()
        if self.home:
            self.home.cleanup()


class Pool:
    """A pool of at most `size` sandboxes, started as needed; as a context manager it closes them at the end.

    `libraries`: installed modules that programs may import beside the standard library; each sandbox loads
    them once.
    """

    def __init__(self, size: int, limits: Limits | None = None, libraries: Sequence[str] = ()) -> None:
        self.size, self.limits, self.libraries = size, limits or Limits(), libraries
        self.idle: list[Sandbox] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self.idle:
            self.idle.pop().close()

    def run(self, jobs: Sequence[Job]) -> list[Result]:
        """Return the results (jobs,), in order. Raises UserError if no sandbox can be started.

        If the budget does not allow each program its whole wall time, each gets SHORT seconds at first. Then
        the unfinished programs share the rest of the budget, and are run anew. So programs that sleep take no
        time from quick programs. A program cannot start another, so its CPU time is at most its wall time,
        and the budget holds for both. It is exceeded only if SHORT seconds for each program are more than it.
        """
        seconds = self.limits.budget * self.size  # seconds of all sandboxes together
        if len(jobs) * self.limits.wall <= seconds:
            return self._round(jobs, self.limits.wall)
        short = min(SHORT, self.limits.wall)
        results = self._round(jobs, short)
        cut = [index for index, result in enumerate(results) if result.ended == "time"]
        share = min(self.limits.wall, seconds / len(cut) - short) if cut else 0.0
        if share > short:
            again = self._round([jobs[index] for index in cut], share)
            for index, result in zip(cut, again, strict=True):
                results[index] = result
        if unfinished := sum(result.ended == "time" for result in results):
            log.warning(
                "%d of %d programs ended after %.3g s, their share of %g s",
                unfinished,
                len(jobs),
                max(short, share),
                self.limits.budget,
            )
        return results

    def _round(self, jobs: Sequence[Job], wall: float) -> list[Result]:
        """Return the results (jobs,) of programs that get `wall` seconds each."""
        results: dict[int, Result] = {}
        busy: dict[int, Sandbox] = {}
        waiting = [index for index, job in enumerate(jobs) if len(job.program) <= LONGEST_PROGRAM]
        waiting.reverse()
        # programs that run a second time: another program may have killed the sandbox, but not twice
        again: set[int] = set()
        with selectors.DefaultSelector() as ready:
            try:
                while waiting or busy:
                    while waiting and len(busy) < self.size:
                        self._start(waiting.pop(), jobs, wall, busy, ready)
                    first = min(sandbox.deadline for sandbox in busy.values())
                    for key, _ in ready.select(max(first - time.monotonic(), 0)):
                        sandbox = busy[key.fd]
                        if not sandbox.more():
                            sandbox.deadline = 0.0  # the process died
                    for out, sandbox in [*busy.items()]:
                        answer = sandbox.received()
                        if answer is None and time.monotonic() < sandbox.deadline:
                            continue
                        ready.unregister(out)
                        del busy[out]
                        if answer is None and not sandbox.deadline and sandbox.index not in again:
                            again.add(sandbox.index)
                            waiting.append(sandbox.index)
                            sandbox.close()
                            continue
                        results[sandbox.index] = self._end(sandbox, answer, len(jobs[sandbox.index].calls))
            finally:
                for sandbox in busy.values():
                    sandbox.close()
        return [results.get(i) or _without_values("too long", len(job.calls)) for i, job in enumerate(jobs)]

    def _start(
        self,
        index: int,
        jobs: Sequence[Job],
        wall: float,
        busy: dict[int, Sandbox],
        ready: selectors.BaseSelector,
    ) -> None:
        job = {"program": jobs[index].program, "calls": jobs[index].calls, "wall": wall}
        sandbox = self.idle.pop() if self.idle else Sandbox(self.limits, self.libraries)
        if not sandbox.send(job):  # the sandbox died while idle
            sandbox.close()
            sandbox = Sandbox(self.limits, self.libraries)
            sandbox.send(job)
        sandbox.index, sandbox.answer = index, b""
        sandbox.deadline = time.monotonic() + wall + GRACE
        busy[sandbox.out] = sandbox
        ready.register(sandbox.out, selectors.EVENT_READ)

    def _end(self, sandbox: Sandbox, answer: dict[str, Any] | None, calls: int) -> Result:
        if answer is None:
            sandbox.close()
            return _without_values("lost", calls)
        if answer["dirty"]:  # the next program gets an empty tmpfs
            sandbox.close()
        else:
            self.idle.append(sandbox)
        return Result(read_values(answer["lines"], calls), answer["ended"])


def run(jobs: Sequence[Job]) -> list[Result]:
    """Return the results (jobs,), from a sandbox for each core. Raises UserError as `Pool.run` does."""
    return _own(os.getpid()).run(jobs)


@cache
def _own(pid: int) -> Pool:
    """Return this process's pool: each process has its own, so that a fork never uses its parent's pipes."""
    return Pool(os.cpu_count() or 1)


def _packages() -> list[str]:
    """Return the folders that packages are installed in."""
    named = [Path(folder) for folder in sys.path if folder]
    return [str(path) for path in named if path.name in ("site-packages", "dist-packages") and path.is_dir()]


def _without_values(ended: str, calls: int) -> Result:
    return Result((Failed(ended),) * calls, ended)


def _settings(limits: Limits) -> dict[str, Any]:
    return {
        "output": limits.output,
        "filter": base64.b64encode(_filter(os.environ)).decode(),
        "limits": {
            "RLIMIT_CPU": limits.cpu,
            "RLIMIT_AS": limits.memory,
            "RLIMIT_FSIZE": limits.file,
            "RLIMIT_NOFILE": limits.descriptors,
            "RLIMIT_CORE": 0,
        },
    }


def _filter(environment: Mapping[str, str]) -> bytes:
    """Return the seccomp filter; b"" if libseccomp is missing but the user has switched the sandbox off.

    Raises UserError if libseccomp is missing otherwise.
    """
    try:
        return instructions()
    except UserError:
        if bare(environment):
            return b""
        raise
