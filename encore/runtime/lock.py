"""One process at a time in a checkpoint folder, or in the workflow's folder.

The library filelock would lock as well, but it does not say which process holds the lock.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from encore.errors import UserError


def only_one(path: Path, busy: Callable[[str], None]) -> TextIO:
    """Take the lock of file `path`, and hold it for as long as the returned file is open.

    If another process holds it, call `busy` with the process's number and, unless that call raises, wait. The
    kernel drops the lock of a process that ends, so a killed process leaves nothing to clean up. Raises
    UserError if there can be no such file, for example because a folder has its name.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except IsADirectoryError:
        raise UserError(f"{path}: expected the file of a lock, found a folder; move it away") from None
    except OSError as error:
        raise UserError(f"{path}: the file of the lock cannot be opened: {error.strerror}") from None
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
