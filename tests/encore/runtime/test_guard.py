"""A guarded command ends with whoever asked for it, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # processes that end each other

# a command with a process of its own; it notes both, and what it is told to end with
TWO = """
import pathlib, subprocess, sys, time, os
child = subprocess.Popen(["sleep", "100"])
pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid} ")
"""
WAITS = TWO + "time.sleep(100)"
PARENT = """
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a job in the background of a shell ignores it
guard = [sys.executable, "-m", "encore.runtime.guard", str(os.getpid()), sys.executable, "-c", sys.argv[1]]
subprocess.Popen(guard, start_new_session=True).wait()
"""


def guarded(folder: Path, code: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "encore.runtime.guard", str(os.getpid()), sys.executable, "-c", code]
    return subprocess.Popen(command, cwd=folder)


def noted(folder: Path) -> list[int]:
    """The processes that a command has noted, once it has."""
    deadline = time.monotonic() + 30
    while not (folder / "pids").exists() or not (folder / "pids").read_text().endswith(" "):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def alive(pid: int) -> bool:
    """Whether a process is there that has not ended; one that nobody has waited for has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 15
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_parent(tmp_path, number):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, WAITS], cwd=tmp_path, stderr=subprocess.DEVNULL)
    pids = noted(tmp_path)
    assert all(map(alive, pids))
    parent.send_signal(number)
    parent.wait()
    assert gone(pids)


def test_it_ends_when_it_is_told_to(tmp_path):
    guard = guarded(tmp_path, WAITS)
    pids = noted(tmp_path)
    guard.terminate()
    assert guard.wait() == 128 + signal.SIGTERM
    assert not any(map(alive, pids))


@pytest.mark.parametrize(("ending", "status"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 128 + 9)])
def test_what_ends_by_itself_leaves_nothing_behind(tmp_path, ending, status):
    guard = guarded(tmp_path, TWO + ending)
    pids = noted(tmp_path)
    assert guard.wait() == status
    assert not any(map(alive, pids))


def test_one_that_will_not_end_is_killed(tmp_path, monkeypatch):
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS
    code = "import sys; from encore.runtime import guard; guard.GRACE = 0.5; guard.main(sys.argv[1:])"
    command = [sys.executable, "-c", code, str(os.getpid()), sys.executable, "-c", deaf]
    guard = subprocess.Popen(command, cwd=tmp_path)
    pids = noted(tmp_path)
    guard.terminate()
    guard.wait()
    assert not any(map(alive, pids))
