"""The messages of the workflow to the console when it begins and when it ends."""

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
from encore.workflow.storage import Store


def say_planned(nodes: Iterable[Node], user_file: Path | None = None, wait: bool = False) -> None:
    """Start a process that prints what the jobs of all nodes without a result will take.

    It is a separate process because it imports torch, which is slow. `user_file` is the file of a recipe that
    is not in recipes/. With `wait` this process does not end before the other, as a dry run would.
    """
    left = [astuple(node) for node in nodes if not Path(node.sentinel).exists()]
    if left:
        with TemporaryFile("w+") as file:  # a pipe would fill up before the planner reads it
            json.dump(left, file)
            file.seek(0)
            command = [sys.executable, "-m", "encore.forecast.left", *([str(user_file)] if user_file else [])]
            beside = subprocess.Popen(command, stdin=file)
        if wait:
            atexit.register(beside.wait)


def show_made(jobs: Iterable[Any], store: Store | None) -> None:
    """Print summary and path of each report that is among the outputs of these Snakemake jobs."""
    files = {str(file) for job in jobs for file in job.output}
    files = {store.place(file) for file in files} if store else files
    _show(sorted(Path(file) for file in files if file.endswith(".html")))


def _show(pages: Iterable[Path]) -> None:
    """Print the summary and the path of each of these reports to stdout, if the report exists."""
    for page in pages:
        summary = page.with_suffix("") / "summary.txt"
        if page.exists() and summary.exists():
            print(summary.read_text(encoding="utf-8").rstrip(), page, sep="\n")


def show_failure() -> None:
    # one write, because the thread of the log writes to the same stream, between a text and its end of line
    sys.stderr.write("The same command goes on from here.\n")


class ShowUnchanged(logging.Filter):
    """A log filter that prints the reports `pages` if Snakemake has nothing to do.

    Snakemake then calls no `onsuccess`, which would print them.
    """

    def __init__(self, pages: list[Path]) -> None:
        super().__init__()
        self.pages = pages

    def filter(self, record: logging.LogRecord) -> bool:
        if record.getMessage().startswith("Nothing to be done"):
            _show(self.pages)
        return True
