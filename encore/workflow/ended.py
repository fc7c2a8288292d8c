"""Why a job has ended that could not say it: `python -I -S …/ended.py STATUS LOG`, after one that has failed.

A process that the kernel kills leaves no word, and the end of its log looks as if all were well. Here the
missing line is added. The exit status is STATUS. It imports little, as it runs when memory is short.
"""

import os
import signal
import sys
from pathlib import Path

KILLED = (
    "killed from outside: most likely by the kernel for want of memory (`dmesg` tells), else by a kill -9"
)
CRASHED = "a crash in compiled code"
CAUSES: dict[int, str] = {
    signal.SIGKILL: KILLED,
    signal.SIGXCPU: "over a limit of processor time (`ulimit -t`)",
    **dict.fromkeys((signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE), CRASHED),
}
BY_SIGNAL = 128  # a shell adds it to the number of the signal that has ended a command


def line(status: int) -> str:
    """What to say of a job that ended with this status of a shell; nothing where the job has said it."""
    cause = CAUSES.get(status - BY_SIGNAL)
    if cause is None:
        return ""
    name = signal.Signals(status - BY_SIGNAL).name
    return f"error: ended by {name}: {cause}; what it has saved is kept, the same command goes on from there"


def _add(log: Path, told: str) -> None:
    """Put a line at the end of a log, also where a progress bar has left the last one open."""
    with log.open("a+b") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - 1))
        before = b"" if stream.read() in (b"", b"\n") else b"\n"
        if told:
            stream.write(before + told.encode() + b"\n")


def main(arguments: list[str]) -> int:
    """`arguments`: the status, and the log."""
    status, log = int(arguments[0]), Path(arguments[1])
    told = line(status)
    try:
        _add(log, told)
    except OSError as error:  # which is why the job has failed, where it could not open its log
        print(f"{told}\nerror: {log}: {os.strerror(error.errno or 0)}".lstrip(), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
