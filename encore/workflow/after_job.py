"""The last command of a job, which notes what the job has made, or why the job was killed.

    python -I -S …/after_job.py made results/…/metrics.json LINEAGE
    python -I -S …/after_job.py ended STATUS …/train.log

`made` writes the digests of the result's files and what the result was made from (encore/runtime/digests.py).
`ended` runs after a job that has failed, and exits with the job's STATUS. A process that the kernel kills
writes no error, and its log ends as if nothing had happened; `ended` adds the missing line.

This file imports the standard library alone, because it runs after every job, also when memory is short.
"""

import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KILLED = (
    "killed from outside: most likely by the kernel for want of memory (`dmesg` tells), else by a kill -9"
)
CRASHED = "a crash in compiled code"
CAUSES: dict[int, str] = {
    signal.SIGKILL: KILLED,
    signal.SIGXCPU: "over a limit of processor time (`ulimit -t`)",
    **dict.fromkeys((signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE), CRASHED),
}
BY_SIGNAL = 128  # number that a shell adds to the number of the signal that has ended a command


def made(result: Path, made_from: str | None = None) -> int:
    """Write the digests of a result's files, and the lineage `made_from`, beside the result.

    Returns the exit status: 0, or 2 if a file cannot be written.
    """
    sys.path.append(str(ROOT))
    from encore.runtime import digests  # imported here, because Python finds it only now

    try:
        digests.note(result)
        if made_from is not None:
            digests.write(digests.record(result), f"{made_from}\n")
    except OSError as error:
        print(f"error: {error.filename or result}: {os.strerror(error.errno or 0)}", file=sys.stderr)
        return 2
    return 0


def ended(status: int, log: Path) -> int:
    """Write into the log of a failed job which signal killed it; write nothing if the job ended by itself.

    Returns `status`, the shell's exit status of the job.
    """
    line = _cause(status)
    try:
        _add(log, line)
    except OSError as error:  # the job may have failed for the same reason, that its log could not be opened
        print(f"{line}\nerror: {log}: {os.strerror(error.errno or 0)}".lstrip(), file=sys.stderr)
    return status


def _cause(status: int) -> str:
    """Return the error line for a shell's exit status; "" if no signal of CAUSES has ended the job."""
    cause = CAUSES.get(status - BY_SIGNAL)
    if cause is None:
        return ""
    name = signal.Signals(status - BY_SIGNAL).name
    return f"error: ended by {name}: {cause}; what it has saved is kept, the same command goes on from there"


def _add(log: Path, line: str) -> None:
    """Add a line to a log, and before it the end of a line that a progress bar has left open."""
    with log.open("a+b") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - 1))
        before = b"" if stream.read() in (b"", b"\n") else b"\n"
        if line:
            stream.write(before + line.encode() + b"\n")


def main(arguments: list[str]) -> int:
    """Run `made` or `ended` from the command line's arguments, and return the exit status."""
    command, *rest = arguments
    return ended(int(rest[0]), Path(rest[1])) if command == "ended" else made(Path(rest[0]), *rest[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
