"""A process that serves warm jobs as the workflow does, and clients that ask it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from encore.workflow.warm import client
from encore.workflow.warm.client import VARIABLE

# The workflow's process: it starts the server, and says where it is and who it is.
WORKFLOW = """
import os, sys
from encore.workflow import warm
warm.start()
print(os.environ.get("ENCORE_WARM"), flush=True)
sys.stdin.read()
"""
NO_GPU = ("--gpus", "0")


@dataclass(frozen=True)
class Workflow:
    folder: Path
    process: subprocess.Popen[str]
    name: str

    def environment(self, **more: str) -> dict[str, str]:
        ours = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", VARIABLE: self.name}
        return os.environ | ours | more

    def command(self, *arguments: str, module: str = "encore.stages") -> list[str]:
        return [sys.executable, "-I", "-S", client.__file__, module, *arguments]

    def ask(
        self,
        *arguments: str,
        module: str = "encore.stages",
        cwd: Path | None = None,
        given: str = "",
        deaf: bool = False,
        **more: str,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments, module=module),
            cwd=cwd or self.folder,
            env=self.environment(**more),
            input=given,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            preexec_fn=partial(_hear, not deaf),
        )

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """A client whose job has begun to work."""
        client = self.client(*arguments)
        assert client.stdout
        assert client.stdout.readline() == "begun\n"  # while it works on: nothing is held back
        wait(lambda: _catches(client.pid, signal.SIGINT))  # it has heard that its job has begun
        return client

    def client(self, *arguments: str) -> subprocess.Popen[str]:
        """A client in a process group of its own."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=partial(_hear, True),
        )

    def server(self) -> int | None:
        """The process that a job comes from; None if it was a plain one."""
        told = json.loads(self.ask("warm", *NO_GPU).stdout)
        assert told["loaded"] in ([], [told["parent"]])
        return told["parent"] if told["loaded"] else None


def opened(folder: Path, **environment: str) -> Iterator[Workflow]:
    given = {k: v for k, v in os.environ.items() if k != VARIABLE} | environment
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", WORKFLOW]
    process = subprocess.Popen(command, cwd=folder, env=given, text=True, **pipes)
    assert process.stdout
    with process:
        yield Workflow(folder, process, process.stdout.readline().strip())
        process.kill()


def _hear(interrupts: bool) -> None:
    """Whether the process hears Ctrl-C, however the tests were started: behind a shell's `&` none does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL if interrupts else signal.SIG_IGN)


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # the second where it ends between open and read
        return False


def _catches(process: int, number: int) -> bool:
    status = Path(f"/proc/{process}/status").read_text()
    return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (number - 1) & 1)


def wait(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)
