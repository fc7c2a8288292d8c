"""In place of our commands, in the tests of warm jobs: it tells what its process is like, and ends as asked.

    python -m encore.stages facts --gpus 0

`load` notes its process; what it does else is in the file `load.py` of the folder, where there is one.
"""

import atexit
import gc
import json
import locale
import os
import signal
import sys
import threading
import time
from pathlib import Path

from encore.runtime.environment import quiet_environment, stop_in_one_line

LOADED: list[int] = []  # the process that has called `load`


def load() -> None:
    LOADED.append(os.getpid())
    with Path("loads.txt").open("a") as record:
        record.write(f"{os.getpid()}\n")
    if Path("load.py").exists():
        exec(Path("load.py").read_text())


def facts() -> dict:
    """All that a job could see of its process, but for its number; and who has loaded for it."""
    before = os.umask(0)
    os.umask(before)
    shown = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP)
    names = {str(number): os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)}
    opened = {int(name) for name in os.listdir("/proc/self/fd")}
    return {
        "loaded": LOADED,
        "argv": sys.argv,
        "path": sys.path,
        "folder": str(Path.cwd()),
        "environment": dict(os.environ),
        "umask": before,
        "signals": {one.name: str(signal.getsignal(one)) for one in shown},
        "blocked": [one.name for one in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "streams": {name: link.split(":")[0] for name, link in names.items()},
        "sockets": [link for number in opened - {0, 1, 2} if (link := _link(number)).startswith("socket")],
        "encodings": [sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, locale.getencoding()],
        "buffered": [sys.stdout.line_buffering, sys.stderr.line_buffering],
        "threads": [threading.active_count(), len(os.listdir("/proc/self/task"))],
        "collects": gc.isenabled(),
        "own_group": os.getpgid(0) == int(os.environ.get("GROUP", "0")),
        "session": os.getsid(0),
    }


def _link(number: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # of the listing itself
        return ""


def main() -> int:
    quiet_environment(names_hub=False)
    what, *rest = sys.argv[1:]
    if what == "facts":
        print(json.dumps(facts()))
    elif what == "warm":  # whose process has loaded, and this one's
        print(json.dumps({"loaded": LOADED, "process": os.getpid(), "parent": os.getppid()}))
    elif what == "echo":
        print(sys.stdin.read())
    elif what == "status":
        return int(rest[0])
    elif what == "exit":
        os._exit(int(rest[0]))
    elif what == "signal":
        os.kill(os.getpid(), int(rest[0]))
    elif what == "raise":
        raise RuntimeError("a fault")
    elif what == "late":  # a thread that is waited for, and what is done at the exit
        atexit.register(print, "at exit")
        if rest[0] == "thread":
            threading.Thread(target=lambda: (time.sleep(0.3), print("thread"))).start()
        print("main")
    elif what == "work":  # until it is stopped, or once it has been begun anew
        again = Path("begun.txt").exists()
        stop_in_one_line(print, lambda: "nothing is saved")
        Path("begun.txt").write_text(str(os.getpid()))
        print("begun", flush=True)
        while not again:
            time.sleep(0.05)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
