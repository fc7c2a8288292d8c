"""The command `encore reward stress`, which says what a reward pays for before a run is spent on it.

The reward runs in a child process (stress_job.py), because a user's code may hang or end its process.
"""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import typer
from tabulate import tabulate

from encore import own_watch
from encore.commands.stress_job import Asked
from encore.errors import UserError
from encore.rewards.outcomes import ENDS, HANGS, Outcome, Scored, faults, outcomes, text
from encore.runtime import files

HEAD = ("the reward …", "paid", "mean", "right", "example")
WORDS = {
    "wrong": "kinds of wrong responses are paid",
    "disguised": "disguises of the right answer are paid",
    "right": "forms and notations of the right answer are paid",
}


@dataclass
class Results:
    """The results of one subject, as the child process has measured them."""

    reward: str
    task: str
    scored: list[Scored] = field(default_factory=list)


def stress(asked: Asked, out: Path | None) -> int:
    """Print a table of what the reward pays for, and write it to `out`. Return the exit status.

    The status is 1 if the reward raises, hangs, is not deterministic, or returns no finite numbers; there is
    a line for each on stderr. Raises UserError for a mistake in the options or the recipe.
    """
    _check_options(asked)
    every = _measured(asked)
    tables = [outcomes(each.reward, each.task, each.scored) for each in every]
    for rows in filter(None, tables):
        _show(rows)
    if out:
        files.write(out, text([row for rows in tables for row in rows]))
        typer.echo(out)
    lines = [line for each in every for line in faults(each.reward, each.scored)]
    for line in lines:
        typer.echo(f"error: {line}", err=True)
    return bool(lines)


def _show(rows: Sequence[Outcome]) -> None:
    """Print the table of one subject, and how many responses of each kind are paid."""
    typer.echo(f"{rows[0].reward}, on {rows[0].task}\n")
    shown = [
        (row.verdict, f"{row.paid:.0%}", f"{row.mean:.2f}", f"{row.right:.2f}", row.example) for row in rows
    ]
    typer.echo(tabulate(shown, HEAD, disable_numparse=True))
    for kind, words in WORDS.items():
        paid = [row.paid > 0 for row in rows if row.kind == kind]
        typer.echo(f"{sum(paid)} of {len(paid)} {words}")
    typer.echo("")


def _check_options(asked: Asked) -> None:
    """Raise UserError unless either data or a recipe is named, and the reward with data."""
    if (asked.data is None) == (asked.recipe is None):
        raise UserError("expected either --data FILE.jsonl or --recipe NAME")
    if asked.recipe is None and asked.reward is None:
        raise UserError("--data: name the reward: encore reward stress my_module:function --data FILE.jsonl")


def _measured(asked: Asked) -> list[Results]:
    """Return what a child process measures of each subject; its death is a fault of the last one."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "results.jsonl")
        command = [sys.executable, "-m", "encore.commands.stress_job", json.dumps(asdict(asked)), str(log)]
        # what the user's code prints goes to stderr, and not between our tables
        status = subprocess.run(command, stdout=2, check=False).returncode
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    every: list[Results] = []
    begun, done = "", False
    for key, value in (json.loads(line) for line in lines):
        if key == "subject":
            every.append(Results(*value))
        elif key == "begun":
            begun = value
        elif key == "scored":
            every[-1].scored.append(Scored(**value))
        elif key == "mistake":
            raise UserError(value)
        done = key == "done"
    if not done and not every:
        raise UserError(f"the child process ended with status {status} before it called the reward")
    if not done:
        hung = status == -own_watch.END
        why = signal.strsignal(-status) if status < 0 else f"exit status {status}"
        fault = HANGS if hung else ENDS
        every[-1].scored.append(
            Scored(begun, "wrong", fault=fault, why="not to be interrupted" if hung else str(why))
        )
    return every
