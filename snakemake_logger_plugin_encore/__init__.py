"""Snakemake's console for long runs: a line when a job starts or ends, and the jobs' own lines.

Snakemake finds this package by its name; profiles/default asks for it.
"""

import contextlib
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_encore.left import said, seconds_left

# job's message -> planned seconds; the file is written while the first jobs run
PLANNED = Path(".snakemake/encore.planned.json")
TAIL = 25  # lines of a failed job's log that are shown
ENDING = {  # Snakemake's message when the user ends it -> the message that is shown instead
    "Will exit after finishing currently running jobs": "told to end: no other job starts; those that run "
    "are waited for (Ctrl-C ends them now, and what they have saved is kept)",
    "Terminating processes on user request": "interrupted: the jobs that run are ended",
}


def with_cores(arguments: list[str]) -> list[str]:
    """Return the command line, in which `--cores` becomes `--cores all` if no number follows it.

    Snakemake's help says "if N is omitted ... the number of available CPU cores", yet since version 8 its
    parser needs the N, and takes the target in `--cores r1_zero` for the N.
    """
    done = list(arguments)
    for i in reversed([i for i, word in enumerate(done) if word in ("--cores", "-c")]):
        if done[i + 1 : i + 2] != ["all"] and not "".join(done[i + 1 : i + 2]).isdigit():
            done.insert(i + 1, "all")
    return done


def with_targets_first(arguments: list[str]) -> list[str]:
    """Return the command line with the target in `--config seeds=5 r1_zero` moved in front of --config."""
    targets: list[str] = []
    rest: list[str] = []
    inside = False
    for word in arguments:
        inside = word in ("--config", "-C") or (inside and not word.startswith("-"))
        swallowed = inside and word not in ("--config", "-C") and "=" not in word
        (targets if swallowed else rest).append(word)
    return targets + rest


def is_snakemake(program: str) -> bool:
    """Return whether `program`, the `sys.argv[0]` of a process, is `snakemake` or `python -m snakemake`."""
    path = Path(program)
    return path.name == "snakemake" or path.parts[-2:] == ("snakemake", "__main__.py")


# Snakemake imports its plugins before it reads its command line.
if is_snakemake(sys.argv[0]):
    sys.argv[1:] = with_cores(with_targets_first(sys.argv[1:]))


def clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"


def shortened(reason: str, most: int = 3) -> str:
    """Return Snakemake's reason for a job, with only the first `most` files of each of its lists of files."""
    lists = []
    for part in reason.split("; "):
        kind, _, names = part.partition(": ")
        files = names.split(", ")
        rest = f" and {len(files) - most} more" if len(files) > most else ""
        lists.append(f"{kind}: {', '.join(files[:most])}{rest}" if names else part)
    return "; ".join(lists)


class LogHandler(LogHandlerBase):
    """A log handler that prints a line when a job starts or ends and, if it failed, the end of its log.

    Warnings are printed unchanged.
    """

    def __post_init__(self) -> None:
        self.jobs: dict[int, tuple[str, float]] = {}  # id -> message and start of a job
        self.done: dict[str, float] = {}  # message -> seconds that the job took
        self.failed: dict[str, list[str]] = {}  # message -> logs of the failed job
        self.ending: set[str] = set()  # keys of ENDING that were logged
        self.began = time.time()
        self.stream = sys.stdout if self.common_settings.stdout else sys.stderr
        self.dry = self.common_settings.dryrun

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(BrokenPipeError):  # raised for example in `snakemake -n | head`
            for line in self.lines(record):
                self.stream.write(f"{line}\n")  # one write, because other threads print to the stream too
                self.stream.flush()

    def lines(self, record: logging.LogRecord) -> list[str]:
        about: dict[str, Any] = record.__dict__
        event = about.get("event")
        if event == LogEvent.JOB_INFO:
            name = about.get("rule_msg") or about["rule_name"]
            self.jobs[about["jobid"]] = (name, time.monotonic())
            reason = f"   ({shortened(about['reason'])})" if self.dry else ""
            return [f"{'would ' if self.dry else 'start  '}{name}{reason}"] if about.get("rule_msg") else []
        if event == LogEvent.JOB_FINISHED:
            name, began = self.jobs.get(about["job_id"], ("", 0.0))
            self.done[name] = time.monotonic() - began
            return [f"end    {name}   {clock(time.monotonic() - began)}"] if " " in name else []
        if event == LogEvent.PROGRESS:
            return [f"       {about['done']} of {about['total']} jobs done{self._left()}"]
        if event == LogEvent.JOB_ERROR:
            name = self.jobs.get(about["jobid"], (about["rule_name"], 0.0))[0]
            self.failed[name] = [str(log) for log in about["log"]]
            return [f"FAILED {name}", *(line for log in about["log"] for line in tail(Path(log)))]
        if event == LogEvent.RUN_INFO:
            return [record.getMessage()]
        if record.getMessage().startswith("Exiting because a job execution failed") and self.failed:
            return [
                "FAILED in all:",
                *(f"       {name}: {', '.join(logs)}" for name, logs in self.failed.items()),
            ]
        if record.levelno >= logging.WARNING:
            return _without_rule_errors(record.getMessage())
        if record.getMessage().startswith("Nothing to be done"):
            return [record.getMessage()]
        ending = {said for said in ENDING if record.getMessage().startswith(said)} - self.ending
        self.ending |= ending  # Snakemake logs it again as each job ends
        return [ENDING[said] for said in ending]

    def _left(self) -> str:
        """Return a phrase such as `, about 20 minutes left`; "" if the run has no plan or no job is done."""
        try:
            fresh = PLANNED.stat().st_mtime >= self.began
            planned = json.loads(PLANNED.read_text(encoding="utf-8")) if fresh else {}
        except (OSError, ValueError):
            return ""
        now = time.monotonic()
        ended = {*self.done, *self.failed}
        running = {name: now - began for name, began in self.jobs.values() if name not in ended}
        seconds = seconds_left(planned, self.done, running, time.time() - self.began)
        return "" if seconds is None else f", {said(seconds)}"

    @property
    def writes_to_stream(self) -> bool:
        return True

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        return True

    @property
    def has_formatter(self) -> bool:
        return True

    @property
    def needs_rulegraph(self) -> bool:
        return False


def tail(log: Path) -> list[str]:
    """Return lines with the name of a log file and its last TAIL lines, indented."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return [f"       {log}, its end:", *(f"         {line}" for line in lines[-TAIL:])]


def _without_rule_errors(message: str) -> list[str]:
    """Return the lines of a message; [] if it repeats a failed job's error with all its configuration."""
    if message.startswith(("RuleException", "CalledProcessError", "WorkflowError:\nAt least one job")):
        return []
    return message.splitlines()
