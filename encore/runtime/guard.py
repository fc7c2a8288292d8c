"""The command `python -m encore.runtime.guard PID …`: it runs a command that must not outlive its parent.

PID is the process that starts this one. When that process is gone, even by `kill -9`, or when a signal asks
this process to end, the command and the other processes of its process group are ended too: by SIGTERM, and
after GRACE seconds by SIGKILL. The exit status is the command's, or 128 + n if signal n has ended the
command, as in a shell.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

LOOK = 0.2  # seconds between two checks of both processes
PR_SET_PDEATHSIG = 1  # linux/prctl.h
GRACE = 10.0  # seconds that the command has to end by itself


def main(arguments: list[str]) -> int:
    """Run a command. `arguments` are the parent's process id, and the command. Returns the exit status."""
    parent, told = int(arguments[0]), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: told.set())
    command = subprocess.Popen(arguments[1:], process_group=0)
    try:
        while command.poll() is None and not told.is_set() and os.getppid() == parent:
            time.sleep(LOOK)
    finally:
        _end(command)
    return command.returncode if command.returncode >= 0 else 128 - command.returncode


def end_with(parent: int) -> None:
    """Have Linux kill this process as soon as its parent has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent has already ended
        os._exit(1)


def _end(command: subprocess.Popen[bytes]) -> None:
    """End the process group of `command`, even if the command has ended and left other processes behind."""
    _signal(command, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while _signal(command, 0) and time.monotonic() < deadline:
        command.poll()  # a process that nobody has waited for still counts as a member of its group
        time.sleep(LOOK / 4)
    _signal(command, signal.SIGKILL)
    command.wait()


def _signal(command: subprocess.Popen[bytes], number: int) -> bool:
    """Send a signal to the process group of `command`, and return whether the group still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command.pid, number)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
