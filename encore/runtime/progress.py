"""The progress lines of a stage: one every five seconds at most; only the first one comes sooner.

All lines go to the console. Lines on the state of a job also go to its log, where `parse` reads them.
"""

import contextlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TextIO

from encore.runtime import gpus

# our name -> the trainer's metric, in the order of the progress line
SHOWN = {
    "loss": "loss",
    "reward": "reward",
    "accuracy": "accuracy",
    "length": "completions/mean_length",
}
FIRST = 1.0  # seconds until the first line
EVERY = 5.0  # seconds between two lines
WARNING = "warning: "  # beginning of a line that warns
Report = Callable[[int, int], None]  # takes the number of finished completions and the number of all
LINE = re.compile(r"\[[\w./:-]{1,300} [\w:.-]{1,100}\] (?P<text>.*)")
COUNT = re.compile(
    r"(?P<what>[\w./-]{1,100}) (?P<done>\d{1,12})/(?P<total>\d{1,12})(?P<rest>(?: .*)?)"
    r"|(?:starting at|resuming from) step (?P<first>\d{1,12}) of (?P<last>\d{1,12})(?:;.*)?"
)
LEFT = re.compile(r" (?P<left>[\d:]{4,12}) left$")
RATE = re.compile(r" (?P<rate>[\d.]{1,12}k?) tok/s")


class LogLine(NamedTuple):
    """The state of a job, read from a line of its log."""

    what: str = ""  # the counted unit: "step", or the task whose completions are drawn; "" in other lines
    done: int = 0
    total: int = 0
    rate: str = ""  # tokens a second, as `9.1k`; "" if the line does not say
    left: str = ""  # time left, as `0:48`; "" if the line does not say
    measured: str = ""  # the rest of the line, such as `reward 0.41 accuracy 0.33`
    warning: str = ""


def clock_text(seconds: float) -> str:
    """Return seconds as a clock shows them: `0:48`, `12:05`, `3:07:00`."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minutes}:{second:02}"


def rate_text(tokens_per_s: float) -> str:
    """Return a rate as text: `870 tok/s`, `9.1k tok/s`."""
    return f"{tokens_per_s / 1000:.1f}k tok/s" if tokens_per_s >= 1000 else f"{tokens_per_s:.0f} tok/s"


def parse(line: str) -> LogLine | None:
    """Return the state of a job from a line of its log; None if another program wrote the line.

    A library's progress bar may stand before it on the same line.
    """
    ours = LINE.search(line)
    if not ours:
        return None
    text = ours["text"]
    if text.startswith(WARNING):
        return LogLine(warning=text.removeprefix(WARNING))
    count = COUNT.fullmatch(text)
    if not count:
        return LogLine()
    if count["first"]:
        return LogLine("step", int(count["first"]), int(count["last"]))
    rest = count["rest"]
    left, rate = LEFT.search(rest), RATE.search(rest)
    measured = RATE.sub("", LEFT.sub("", rest)).strip()
    values = (rate["rate"] if rate else "", left["left"] if left else "", measured)
    return LogLine(count["what"], int(count["done"]), int(count["total"]), *values)


def _log(stream: TextIO) -> TextIO | None:
    """Return stderr if it goes to a log file, as in the workflow; None if it does not.

    None as well if `stream` goes to the same file, or if this is not the first process of its stage.
    """
    with contextlib.suppress(OSError, ValueError):
        log = os.fstat(sys.stderr.fileno())
        if gpus.first() and stat.S_ISREG(log.st_mode):
            with contextlib.suppress(OSError, ValueError):
                if os.path.samestat(log, os.fstat(stream.fileno())):
                    return None
            return sys.stderr
    return None


class Progress:
    """A printer of the lines `[recipe/scale/arm/seed stage] step k/n …` of one stage."""

    def __init__(
        self,
        name: str,
        stream: TextIO | None = None,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ):
        folder, _, stage = name.rpartition("/")
        self.label = f"{folder} {stage}".strip()
        self.stream = stream if stream is not None else sys.stdout
        self.log = _log(self.stream)
        self.every = every
        self.clock = clock
        self.began = self.last = self.clock()
        self.first_step = 0
        self.first_tokens = 0.0
        self.quiet = True  # whether no step line has been printed yet
        self.seen: dict[str, float] = {}

    def say(self, message: str) -> None:
        """Print one line now, on the console only."""
        print(f"[{self.label}] {message}", file=self.stream, flush=True)

    def note(self, message: str) -> None:
        """Print one line now, on the console and in the log."""
        self.say(message)
        if self.log:
            with contextlib.suppress(OSError):  # the log may be on a full disk, which saving reports
                print(f"[{self.label}] {message}", file=self.log, flush=True)

    def warn(self, message: str) -> None:
        """Print a warning now, on the console and in the log."""
        self.note(f"{WARNING}{message}")

    def start(self, step: int, total: int, tokens: float = 0.0, curve: Path | None = None) -> None:
        """Announce the first step, and start the clock from which the time left is estimated.

        `curve` is the file that grows as training goes on.
        """
        begins = f"{'resuming from' if step else 'starting at'} step {step} of {total}"
        self.note(begins + (f"; its curve so far: {curve}" if curve else ""))
        self.began = self.last = self.clock()
        self.first_step, self.first_tokens = step, tokens

    def step(self, step: int, total: int, metrics: Mapping[str, float], tokens: float = 0.0) -> None:
        """Report `metrics` of `step`, unless the last line is too recent."""
        self.seen.update({k: v for k, v in metrics.items() if isinstance(v, int | float)})
        now = self.clock()
        if now - self.last < (min(FIRST, self.every) if self.quiet else self.every):
            return
        self.last, self.quiet = now, False
        spent = max(now - self.began, 1e-9)
        parts = [f"step {step}/{total}"]
        # if there are rewards, the loss is a policy gradient's, whose value means nothing
        hidden = {"loss"} if "reward" in self.seen else set()
        for label, key in SHOWN.items():
            if key in self.seen and label not in hidden:
                value = self.seen[key]
                parts.append(f"{label} {value:.0f}" if label == "length" else f"{label} {value:.2f}")
        if tokens > self.first_tokens:
            parts.append(rate_text((tokens - self.first_tokens) / spent))
        if step > self.first_step:
            parts.append(f"{clock_text(spent / (step - self.first_step) * (total - step))} left")
        self.note(" ".join(parts))

    def end(self, message: str) -> None:
        """Print `message`, and how long the stage took."""
        self.note(f"{message} in {clock_text(self.clock() - self.began)}")


def reporter(progress: Progress, task: str, clock: Callable[[], float] = time.monotonic) -> Report:
    """Return a function that prints `heldout 1024/4096 completions 0:12 left` every few seconds.

    It also prints a line when all completions are finished.
    """
    began = last = clock()

    def report(done: int, total: int) -> None:
        nonlocal last
        now = clock()
        if done < total and now - last < EVERY:
            return
        last = now
        left = f" {clock_text((now - began) / done * (total - done))} left" if 0 < done < total else ""
        progress.note(f"{task} {done}/{total} completions{left}")

    return report
