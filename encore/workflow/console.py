"""What the workflow writes to the console when it begins and when it ends."""

import atexit
import json
import logging
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from encore.recipe.graph import Node


def say_planned(nodes: Iterable[Node], own: Path | None = None, wait: bool = False) -> None:
    """Have a process beside the jobs say what those to come will take: torch's import is slow.

    `own`: the file of a recipe that is not in recipes/. `wait`: at the end, as a dry run ends before it.
    """
    left = [astuple(node) for node in nodes if not Path(node.sentinel).exists()]
    if left:
        with TemporaryFile("w+") as file:  # a pipe would be full before the planner reads
            json.dump(left, file)
            file.seek(0)
            command = [sys.executable, "-m", "encore.forecast.left", *([str(own)] if own else [])]
            beside = subprocess.Popen(command, stdin=file)
        if wait:
            atexit.register(beside.wait)


def show_made(jobs: Iterable[Any]) -> None:
    """The pages among the files that these jobs of Snakemake have made."""
    files = {str(file) for job in jobs for file in job.output}
    _show(sorted(Path(file) for file in files if file.endswith(".html")))


def _show(pages: Iterable[Path]) -> None:
    """The summary and the path of each report that is there, on stdout."""
    for page in pages:
        summary = page.with_suffix("") / "summary.txt"
        if page.exists() and summary.exists():
            print(summary.read_text(encoding="utf-8").rstrip(), page, sep="\n")


def show_failure() -> None:
    print("The same command goes on from here.", file=sys.stderr)


class ShowUnchanged(logging.Filter):
    """Shows these pages when Snakemake logs that nothing is to be done: it then calls no `onsuccess`."""

    def __init__(self, pages: list[Path]) -> None:
        super().__init__()
        self.pages = pages

    def filter(self, record: logging.LogRecord) -> bool:
        if record.getMessage().startswith("Nothing to be done"):
            _show(self.pages)
        return True
