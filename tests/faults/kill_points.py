"""Where a process is killed: before its n-th operation on a file of its folder, or after so much computing.

Operations are Python's audit events (PEP 578): every file opened, renamed or removed, in order. So a kill can
be laid between any two of them, however short the time between is.
"""

import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")
COMPUTING = "computing"
# part of a path, or of what is done to it -> the phase of a stage; the first that fits
PHASES = {
    ".sha256": "noting digests",
    COMPUTING: COMPUTING,
    "/report/figures/": "drawing figures",
    "results/report/": "writing tables and page",
    "os.remove": "removing the training state",
    "os.rmdir": "removing the training state",
    "shutil.rmtree": "removing the training state",
    "saving": "saving a checkpoint",
    "checkpoint-": "saving or reading a checkpoint",
    "lock": "beginning",
    "final": "saving or reading a product",
    "metrics.json": "writing or reading metrics",
    "provenance.json": "writing provenance",
    "curve.csv": "writing the curve",
    "completions.jsonl": "writing completions",
    "samples.jsonl": "writing samples",
    "ratios.csv": "writing ratios",
    "calibration.csv": "writing calibration",
    "after.json": "writing scores",
}


def phase(operation: str) -> str:
    """What a stage was doing, from a line of the log of `watch`."""
    return next((name for part, name in PHASES.items() if part in operation), "other files")


def watch(log: str, number: int) -> None:
    """Note each operation on a file below the working folder in `log`, with the seconds computed until then;
    die before that of this number. 0: never."""
    folder, counted = f"{Path.cwd()}/", itertools.count(1)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def hook(event: str, args: tuple) -> None:
        if event not in EVENTS or not args or not isinstance(args[0], str | os.PathLike):
            return
        path = os.fspath(args[0])
        if not isinstance(path, str) or (path.startswith("/") and not path.startswith(folder)):
            return
        line = f"{time.process_time():.3f} {event} {path.removeprefix(folder)}\n"
        os.write(out, line.encode(errors="replace"))
        if next(counted) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def after_computing(log: str, seconds: float) -> None:
    """Note operations as `watch` does; die once the process has computed for so many seconds."""
    watch(log, 0)
    until = time.process_time() + seconds

    def wait() -> None:
        while time.process_time() < until:
            time.sleep(0.01)
        with open(log, "a") as out:
            out.write(f"{time.process_time():.3f} {COMPUTING}\n")
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
