"""The jobs in a folder of results: those that left files, and those that the workflow's plan names."""

import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from encore.recipe.base import IDENTIFIER, NAME
from snakemake_logger_plugin_encore import PLANNED

Kind = Literal["stage", "eval"]
# the workflow's name for what a job does -> the kind of the job
KINDS: Mapping[str, Kind] = {"train": "stage", "evaluate": "eval"}
MESSAGE = re.compile(
    rf"(train|evaluate) ({IDENTIFIER})/({NAME})/({NAME})/seed(\d{{1,9}})/({IDENTIFIER})", re.ASCII
)
SEED = re.compile(r"seed(\d{1,9})", re.ASCII)
LARGEST_PLAN = 16 * 2**20  # bytes of the largest plan that is read


class Job(NamedTuple):
    """A stage or an evaluation, named by the parts of its folder's path."""

    recipe: str
    scale: str
    arm: str
    seed: int
    kind: Kind
    name: str  # name of the stage, or of the evaluated checkpoint

    @property
    def run(self) -> str:
        """The name of the run that the job is a part of."""
        return f"{self.recipe}/{self.scale}"

    @property
    def path(self) -> str:
        """The path below results/: a stage's folder, or the common beginning of an evaluation's files."""
        name = self.name if self.kind == "stage" else f"evals/{self.name}"
        return f"{self.run}/{self.arm}/seed{self.seed}/{name}"


class Files(NamedTuple):
    """The files that a job has left, and whether it is done."""

    done: bool
    log: Path
    changed: float  # time of the last change of a file, in seconds of the epoch


class Plan(NamedTuple):
    """The plan of the run that was started last."""

    seconds: Mapping[Job, float]  # planned seconds of each job
    began: float  # time of the start, in seconds of the epoch


def on_disk(results: Path, recipes: Collection[str]) -> dict[Job, Files]:
    """Return each job that has begun -> its files; if `recipes` is not empty, only jobs of these recipes.

    A job whose result the workflow has marked as no longer valid is left out, because it will run again.
    """
    jobs: dict[Job, Files] = {}
    for recipe in _folders(results, IDENTIFIER):
        if recipes and recipe.name not in recipes:
            continue
        for scale in _folders(recipe, NAME):
            for arm in _folders(scale, NAME):
                for folder in _folders(arm, SEED.pattern):
                    seed = int(folder.name.removeprefix("seed"))
                    jobs |= _of_seed(folder, (recipe.name, scale.name, arm.name, seed))
    return jobs


def _of_seed(folder: Path, run: tuple[str, str, str, int]) -> Iterator[tuple[Job, Files]]:
    """Yield the stages and evaluations of one seed that have begun, with their files.

    `folder` is the folder of the seed, and `run` has the recipe, scale, arm and seed.
    """
    for stage in _folders(folder, IDENTIFIER):
        if stage.name == "evals":
            continue
        times = _times(stage)
        if files := _files(times, "metrics.json", "metrics.stale", stage / "train.log"):
            yield Job(*run, "stage", stage.name), files
    times = _times(folder / "evals")
    names = {file.partition(".")[0] for file in times if file.endswith((".json", ".log"))}
    for name in filter(re.compile(IDENTIFIER, re.ASCII).fullmatch, sorted(names)):
        if files := _files(times, f"{name}.json", f"{name}.stale", folder / f"evals/{name}.log"):
            yield Job(*run, "eval", name), files


def _files(times: Mapping[str, float], result: str, marker: str, log: Path) -> Files | None:
    """Return the files of a job; None if it has left no files, or will run again.

    `times` are the _times() of its folder, `result` is the file of its result, and `marker` marks the result
    as no longer valid.
    """
    done = result in times and marker not in times
    if not done and (log.name not in times or result in times):
        return None
    return Files(done, log, times[result] if done else times[log.name])


def _folders(folder: Path, pattern: str) -> list[Path]:
    """Return the subfolders whose full name matches `pattern`; [] if `folder` cannot be read."""
    try:
        with os.scandir(folder) as entries:
            matches = [entry for entry in entries if re.fullmatch(pattern, entry.name, re.ASCII)]
            return sorted(Path(entry.path) for entry in matches if entry.is_dir())
    except OSError:
        return []


def _times(folder: Path) -> dict[str, float]:
    """Return the name of each file in a folder -> the time of its last change; {} if it cannot be read.

    A time is in seconds of the epoch.
    """
    times: dict[str, float] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                except OSError:  # the file has gone since the folder was listed
                    continue
                if stat.S_ISREG(status.st_mode):
                    times[entry.name] = status.st_mtime
    except OSError:
        return {}
    return times


class State(NamedTuple):
    """The files that a training writes while it runs; None for a missing file."""

    curve: Path | None
    completions: Path | None
    changed: float  # time of the last change of a file, in seconds of the epoch; 0 without any file


def training_state(checkpoints: Path, job: Job) -> State:
    """Return the newest curve and completions in the training state of a stage.

    The state has a folder for each configuration that was tried. If the stage trains an ensemble, each member
    has a folder in there.
    """
    newest = {"curve.csv": (0.0, Path()), "completions.jsonl": (0.0, Path())}
    for folder in _folders(checkpoints / job.path, r"[0-9a-f]{1,64}"):
        for inner in (folder, *_folders(folder, r"member\d{1,4}")):
            times = _times(inner)
            for name, (time, _) in newest.items():
                if times.get(name, 0.0) > time:
                    newest[name] = times[name], inner / name
    (curved, curve), (sampled, completions) = newest.values()
    return State(curve if curved else None, completions if sampled else None, max(curved, sampled))


def planned(root: Path, recipes: Collection[str]) -> Plan:
    """Return the plan of the run that was started last in the folder `root`; an empty plan without any."""
    path = root / PLANNED
    try:
        status = path.stat()
        if status.st_size > LARGEST_PLAN or not stat.S_ISREG(status.st_mode):
            return Plan({}, 0.0)
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return Plan({}, 0.0)
    seconds: dict[Job, float] = {}
    for message, value in content.items() if isinstance(content, dict) else ():
        parts = MESSAGE.fullmatch(message)
        if parts and isinstance(value, int | float) and 0 <= value < 1e12:
            does, recipe, scale, arm, seed, name = parts.groups()
            if not recipes or recipe in recipes:
                seconds[Job(recipe, scale, arm, int(seed), KINDS[does], name)] = float(value)
    return Plan(seconds, status.st_mtime)
