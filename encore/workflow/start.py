"""The start of the workflow, which runs when Snakemake reads the Snakefile, before it plans any job."""

import gc
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from snakemake.logging import logger

from encore import validity
from encore.errors import UserError
from encore.recipe.checks import capacity
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_sound, own_file
from encore.runtime.lock import only_one
from encore.workflow import carry, clean, marks, orphans, storage, targets, warm
from encore.workflow.choice import choice
from encore.workflow.console import ShowUnchanged, say_planned
from encore.workflow.jobs import Jobs
from encore.workflow.outputs import Report

LOCK = Path(".snakemake/encore.lock")
# new objects after which Python looks for garbage: a plan makes millions of objects and drops few of them, so
# that Python's 700 cost a fifth of the time of a large plan and save no memory
NEW_OBJECTS = 100_000


def start(
    config: Mapping[str, Any], quickstart: str, is_main_process: bool, checkpoints: Any, settings: Any = None
) -> tuple[Jobs, TextIO | None]:
    """Return the jobs of all recipes and, if jobs will run, the lock that keeps other runs out of the folder.

    The main process also checks the command line and marks the results that no longer hold. A mistake ends
    the process with one line and exit status 2.
    """
    gc.set_threshold(NEW_OBJECTS)
    try:
        user_file = own_file(config)
        recipes, broken = load_sound(user_file=user_file)
        if user_file and user_file.stem in broken:
            raise broken[user_file.stem]
        try:
            chosen = choice(recipes, config)
        except UserError as error:  # the broken recipe may be the one that the user means
            raise next(iter(broken.values()), error) from None
        kept_in = storage.of(settings) if settings else None
        if kept_in and chosen.auto:
            raise UserError("--config seeds: auto needs results in a folder; expected a number of seeds")
        jobs = Jobs(Graph(recipes), chosen, checkpoints, kept_in)
        if kept_in:
            kept_in.link()
        return jobs, _prepare(jobs, broken, quickstart) if is_main_process else None
    except UserError as error:
        for line in error.lines:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(2)


def _prepare(jobs: Jobs, broken: Mapping[str, UserError], quickstart: str) -> TextIO | None:
    arguments = targets.arguments()
    targets.check_sound(broken, arguments, jobs.choice.recipe or quickstart)
    for mistake in broken.values():
        print(f"warning: {mistake.lines[0]}; this recipe is left out", file=sys.stderr)
    requested = targets.requested(jobs.graph, jobs.choice, arguments, quickstart)
    runs_jobs = targets.runs_jobs(arguments)
    nodes = jobs.nodes(requested)
    capacity.check_capacity(jobs.graph, [node for node in nodes if not Path(node.sentinel).exists()])
    lock = _lock(runs_jobs)
    if lock and jobs.store:
        with carry.told(jobs.store.url):
            carry.get_results(carry.Bucket.at(jobs.store.url))
    if lock:
        _mark(jobs, requested, nodes)
    if lock and not runs_jobs:
        lock.close()
        lock = None
    if runs_jobs and jobs.choice.file:
        clean.remember(jobs.choice.file)
    if arguments and requested and (runs_jobs or arguments.dryrun):
        say_planned(nodes, jobs.choice.file, wait=not runs_jobs)
    for line in validity.differences(Path(node.sentinel) for node in nodes if node.kind == "stage"):
        print(line, file=sys.stderr)
    if not broken and (unused := clean.told(jobs.graph, Path("checkpoints"))):
        print(unused, file=sys.stderr)
    if arguments and runs_jobs and requested:
        warm.start()
    if arguments and runs_jobs:
        logger.addFilter(
            ShowUnchanged([request.page for request in requested if isinstance(request, Report)])
        )
    return lock


def _lock(runs_jobs: bool) -> TextIO | None:
    """Take and return the lock of the folder; None if another process holds it and no jobs will run.

    If jobs will run, the jobs of an earlier run that are still in Slurm are ended. Raises UserError if jobs
    will run and another process holds the lock.
    """
    try:
        lock = only_one(LOCK, busy)
    except UserError:
        if runs_jobs:
            raise
        return None
    if runs_jobs:
        orphans.end(Path.cwd())
    return lock


def busy(holder: str) -> NoReturn:
    """Raise the UserError that says that process `holder` uses the folder."""
    raise UserError(f"another snakemake (process {holder}) runs in this folder; wait for it")


def _mark(jobs: Jobs, requested: Sequence[Report | Node], nodes: Sequence[Node]) -> None:
    """Mark the results that no longer hold, with a line for each on stderr."""
    try:
        lines = marks.mark(
            jobs.graph, nodes, jobs.judgements(requested), jobs.later(requested), bool(jobs.store)
        )
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}; mend that and run the same command") from None
    for line in lines:
        print(line, file=sys.stderr)
