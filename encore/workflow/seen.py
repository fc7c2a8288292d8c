"""Digests of files that need not be read again: the file system says that they are as they were.

A file is taken as unchanged where its size, its inode and both its times are those with which it was read.
The time of its last change of any kind (ctime) is the kernel's: no `touch`, `cp -p` or `rsync -t` sets it.
What is younger than `SETTLED` is read again, for two writes within a tick of the clock have the same time.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns

from encore.runtime import files

CHECKED = Path(".snakemake/encore.checked.json")
SETTLED = 2 * 10**9  # ns


@dataclass
class Seen:
    known: dict[str, list]  # file -> size, inode, mtime, ctime, digest
    used: set[str] = field(default_factory=set)

    def digest(self, path: Path) -> str:
        """The SHA-256 of a file's content, 64 hex digits."""
        name, stat = str(path), path.stat()
        now = [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]
        self.used.add(name)
        entry = self.known.pop(name, [])
        if entry[:-1] != now:
            entry = [*now, files.digest(path)]
        if stat.st_ctime_ns < time_ns() - SETTLED:
            self.known[name] = entry
        return entry[-1]

    def save(self) -> None:
        """Keep what is known of files that are still there."""
        kept = {name: entry for name, entry in self.known.items() if name in self.used or Path(name).exists()}
        files.write_json(CHECKED, {"files": kept})


def read() -> Seen:
    """What was known when the workflow last started; nothing where that is lost or damaged."""
    try:
        known = json.loads(CHECKED.read_text(encoding="utf-8"))["files"]
        return Seen(
            {name: entry for name, entry in known.items() if len(entry) == 5 and isinstance(entry[4], str)}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Seen({})
