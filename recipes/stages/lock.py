"""One process at a time in a checkpoint folder."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def only_one(folder: Path, say: Callable[[str], None]) -> Iterator[IO]:
    """Hold the lock of `folder`, an open file; where another process holds it, say so and wait.

    The kernel drops the lock with its process, so a killed one leaves nothing to clean.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            say(f"waiting for process {file.read().strip() or '?'}, which works in {folder}")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield file
