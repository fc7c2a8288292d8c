"""Files that grow: each read returns the lines that were added since the previous read.

Another machine may write them: a line may be incomplete, and a file may be cut, replaced, or gone.
"""

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

MOST = 8 * 2**20  # bytes read at a time; the rest is read the next time
LONGEST = 2**16  # largest number of bytes of a line; only the end of a longer line is kept
ANCHOR = 64  # number of bytes before the place of reading; they show whether the file was replaced
BREAKS = re.compile(rb"[\r\n]+")  # a progress bar ends each of its states with a carriage return


class Gained(NamedTuple):
    """The complete lines that a file has gained since the previous read."""

    lines: tuple[str, ...] = ()
    anew: bool = False  # whether the file was replaced, so that lines of earlier reads no longer count


class Growing:
    """A text file that another process writes to."""

    def __init__(self, path: Path):
        self.path = path
        self.bytes_read = 0  # bytes read since this object was made
        self._offset = 0
        self._anchor = self._part = b""
        self._seen = (0, 0)  # size and time of the last change

    def gained(self) -> Gained:
        """Return the lines that were added since the last call; no lines if the file cannot be read."""
        try:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode):  # reading a pipe would never end
                return Gained()
            seen = (status.st_size, status.st_mtime_ns)
            if seen == self._seen and self._offset == status.st_size:
                return Gained()
            with self.path.open("rb") as file:
                anew = self._offset > status.st_size or not self._goes_on(file.fileno())
                if anew:
                    self._offset, self._anchor, self._part = 0, b"", b""
                data = os.pread(file.fileno(), MOST, self._offset)
        except OSError:
            return Gained()
        self._seen = seen
        self._offset += len(data)
        self.bytes_read += len(data)
        self._anchor = (self._anchor + data)[-ANCHOR:]
        *lines, part = BREAKS.split(self._part + data)
        self._part = part[-LONGEST:]
        return Gained(tuple(line[-LONGEST:].decode("utf-8", errors="replace") for line in lines), anew)

    def _goes_on(self, number: int) -> bool:
        """Return whether an open file (`number` is its descriptor) is still the one that was read before."""
        return os.pread(number, len(self._anchor), self._offset - len(self._anchor)) == self._anchor


def last_lines(path: Path, size: int) -> tuple[list[str], bool]:
    """Return the complete lines within the last `size` bytes of a file, and whether these are all its lines.

    The result is ([], True) if the file cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return [], True
        with path.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - size)
            file.seek(start)
            data = file.read(size)
    except OSError:
        return [], True
    lines = data.split(b"\n")[1 if start else 0 : -1]  # text after the last line break is an incomplete line
    return [line.decode("utf-8", errors="replace") for line in lines], start == 0
