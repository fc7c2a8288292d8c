"""The log of a job, read while it grows: the job's progress, its warnings, and why it ended."""

import re
from pathlib import Path

from analysis.watch.growing import Growing
from encore.runtime.progress import LogLine, parse

WARNINGS = 20  # largest number of warnings of a job that are kept
LONGEST = 500  # largest number of characters of a line that are shown
# the end of a progress bar may stand before the error on the same line
ERROR = re.compile(r"(?:^|\])error: (.+)")
STOPPED = re.compile(r"(?:^|\])stopped; (.+)")
TRACEBACK = "Traceback (most recent call last)"


class JobLog:
    """The content of a job's log, up to the line that was read last."""

    def __init__(self, path: Path):
        self.file = Growing(path)
        self._forget()

    def _forget(self) -> None:
        self.progress = LogLine()  # the newest line that counts steps or completions
        self.warnings: list[str] = []
        self.error = ""  # the error that has ended the job
        self.stopped = ""  # the last line of a job that was interrupted
        self._falling = False  # whether a traceback has begun

    def update(self) -> None:
        """Read the new part of the log; forget the old log if it was replaced: the job has started again."""
        lines, anew = self.file.gained()
        if anew:
            self._forget()
        for line in lines:
            self._take(line)

    def _take(self, line: str) -> None:
        news = parse(line)
        if news:
            self.error = self.stopped = ""  # the job goes on, so an earlier line has not ended it
            self._falling = False
            if news.warning and news.warning[:LONGEST] not in self.warnings:
                self.warnings = [*self.warnings, news.warning[:LONGEST]][-WARNINGS:]
            if news.total:
                self.progress = news
        elif ended := ERROR.search(line):
            self.error = ended[1][:LONGEST]
        elif stopped := STOPPED.search(line):
            self.stopped = stopped[1][:LONGEST]
        elif TRACEBACK in line:
            self._falling = True
        elif self._falling and line and not line[0].isspace():
            self._falling, self.error = False, line[:LONGEST]

    @property
    def seconds_a_step(self) -> float:
        """The seconds for each step to come, by the job's own estimate of the time left; 0 without one."""
        rest = self.progress.total - self.progress.done
        return seconds(self.progress.left) / rest if rest > 0 and self.progress.left else 0.0


def seconds(clock: str) -> float:
    """Return the seconds of a time such as `0:48` or `3:07:00`; 0 if it is not a time."""
    parts = clock.split(":")
    if not all(part.isascii() and part.isdigit() for part in parts):
        return 0.0
    return float(sum(int(part) * 60**place for place, part in enumerate(reversed(parts))))
