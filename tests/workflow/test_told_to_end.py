"""A workflow that is told to end while its jobs work: it says so, and nothing of it is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.fault(
    "SIGINT to its process group, as of Ctrl-C",
    "a workflow whose jobs work",
    "it and its jobs end at once, each in a line; no orphan",
)
@pytest.mark.slow
def test_an_interrupted_workflow_ends_with_its_jobs(project):
    run, said = told(project, lambda process: os.killpg(process, signal.SIGINT))
    assert run != 0
    # where its jobs end before it minds the signal, they have failed
    assert said.count("interrupted: the jobs that run are ended") == 1 or "FAILED in all:" in said
    assert said.count("stopped; its state is saved") == 2, said  # by the job itself, and the end of its log
    assert "The same command goes on from here.\n" in said, said[-1500:]
    assert "Traceback" not in said


@pytest.mark.fault(
    "SIGTERM to it alone",
    "a workflow whose jobs work",
    "a line says that no other job starts and those that run are waited for; no orphan",
)
@pytest.mark.slow
def test_a_workflow_that_is_told_to_end_waits_for_its_jobs(project):
    run, said = told(project, lambda process: os.kill(process, signal.SIGTERM))
    assert run != 0
    assert said.count("told to end: no other job starts; those that run are waited for") == 1
    (job,) = [line.split()[2] for line in said.splitlines() if line.startswith("start")]
    assert f"end    train {job} " in said  # its only one
    assert (project.folder / f"results/{job}/metrics.json").exists()
    assert "Traceback" not in said


def told(project, tell: Callable[[int], None]) -> tuple[int, str]:
    """Status and words of a workflow that is told while its first stage trains; nothing of it still runs."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = subprocess.Popen(
        project.command(), cwd=project.folder, env=os.environ | {"TOY_SLEEP": "1", "PATH": path},
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    at_work, deadline = project.folder / "checkpoints", time.monotonic() + 120
    while not [file for file in at_work.rglob("state.json") if file.read_text() == "1"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    tell(run.pid)
    said, _ = run.communicate(timeout=120)
    deadline = time.monotonic() + 20
    while running := of_session(run.pid):
        assert time.monotonic() < deadline, running
        time.sleep(0.05)
    return run.returncode, said


def of_session(session: int) -> list[str]:
    """The command lines of the processes of a session that still run."""
    asked = ["ps", "-s", str(session), "-o", "stat=,args="]
    lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
    return [line for line in lines if not line.startswith("Z")]
