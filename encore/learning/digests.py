"""The digests of a training checkpoint, written when it is saved and checked before training resumes from it.

The first process computes the digests of all files, each file in its own thread, right after all processes
have written their files. The files are still in memory then, and SHA-256 takes half a second to a second for
each gigabyte.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from encore.runtime import digests
from encore.runtime.sentinel import sizes

DIGESTS = "checkpoint.sha256"  # a file of the checkpoint that `sha256sum -c` can read
AT_ONCE = min(8, os.cpu_count() or 1)  # number of files that are read at the same time


def write(checkpoint: Path, last: str) -> None:
    """Write the digests of all files to DIGESTS. The list ends with the line of the file `last`."""
    names = sorted(sizes(checkpoint), key=lambda name: (name == last, name))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        computed = pool.map(lambda name: digests.of_file(checkpoint / name), names)
        text = digests.text_of(zip(computed, names, strict=True))
    (checkpoint / DIGESTS).write_text(text, encoding="utf-8")


def damaged(checkpoint: Path, last: str) -> str | None:
    """Return the name of a file that is missing or not as it was saved; None if all files are as saved.

    None is also returned if there is no DIGESTS, as in checkpoints of earlier versions, because nothing is
    known then. `last` is the file whose line ends the list; a list that does not end with it is damaged.
    """
    try:
        text = (checkpoint / DIGESTS).read_bytes().decode()
        listed = digests.parse(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return DIGESTS
    if not text.endswith(f"  {last}\n"):
        return DIGESTS
    with ThreadPoolExecutor(AT_ONCE) as pool:
        now = pool.map(lambda name: _digest(checkpoint / name), listed)
        return next((name for name, digest in zip(listed, now, strict=True) if listed[name] != digest), None)


def _digest(file: Path) -> str | None:
    """Return the digest of a file; None if it cannot be read."""
    try:
        return digests.of_file(file)
    except (OSError, ValueError):
        return None
