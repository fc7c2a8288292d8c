"""One process at a time: in a checkpoint folder, in the folder of the workflow."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TextIO


def only_one(path: Path, busy: Callable[[str], None]) -> TextIO:
    """Hold the lock file `path` for as long as the returned file is open.

    The kernel drops the lock with its process, so a killed one leaves nothing to clean. Where another process
    holds it, `busy` is called with that process's number; unless it raises, wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        try:
            busy(file.read().strip() or "?")
        except BaseException:
            file.close()
            raise
        fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file
