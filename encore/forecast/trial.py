"""A trial of a job, which is cut short and run by its ordinary command in a separate process.

A stage has two optimizer steps, because an optimizer has its state from the second one on, and the first one
of a process is slow. An evaluation has a few items. All other settings of the recipe stay.
"""

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from encore.recipe.base import present
from encore.recipe.kinds import PolicyGradientStage
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import Stage
from encore.recipe.kinds.training import TrainingStage
from encore.runtime import sentinel
from encore.runtime.gpus import SPREAD

Config = dict[str, Any]  # config of a stage or an evaluation, as its job gets it
STEPS = 2
DRAWS = ("sample", "rejection_sampling")  # stages whose time depends on the number of their problems
LEAST_ROWS = 64  # rows of data for a later stage, because some are held out and others have no pair left
SPARE = 1.5  # multiple of the steps' data that is made, to be safe
COMPLETIONS = 256  # most completions that an evaluation draws of a task
Runner = Callable[[Sequence[str], int, Path], int]  # module and arguments, threads, log -> exit status
ROOM = "a smaller per_device_train_batch_size (with global_batch the result stays), gradient_checkpointing, "
ROOM += "lora or resources.shard: fsdp would help"


@dataclass(frozen=True)
class Shortened:
    config: Config
    share: float  # share of the whole work, if it is known beforehand; else 1
    unknown: tuple[str, ...] = ()  # things that the share leaves out because their size is not known


def cut_stage(config: Config, rows: int, problems: int, from_cut: bool) -> Shortened:
    """Return the stage with two steps or, if it draws completions, with `rows` of its `problems`.

    `from_cut`: the stage's data come from a stage that was cut short. The key `problems` is then left out,
    because there may be fewer problems.
    """
    kind, short = config["run"], {key: value for key, value in config.items() if key != "evaluate_every"}
    if kind in SPREAD:
        short["args"] = {**config["args"], "max_steps": STEPS, "logging_steps": 1}
        if "max_staleness" in config:  # otherwise the first step would sample for both
            short["max_staleness"] = 0
    elif kind == "policy_gradient":
        short["args"] = {**config["args"], "epochs": STEPS}
    elif kind in DRAWS and problems > rows:
        short["problems"] = rows
        return Shortened(short, rows / problems)
    if from_cut:
        short.pop("problems", None)
    return Shortened(short, 1.0)


def rows_needed(stages: Sequence[TrainingStage], processes: int) -> int:
    """Return the least number of rows of data with which all stages that learn from rows can be tried."""
    steps = [stage.step_size(processes) for stage in stages]
    return max([LEAST_ROWS, *(ceil(SPARE * size) for size in steps)])


def steps(stage: TrainingStage | PolicyGradientStage, epochs: float) -> int:
    """Return the optimizer steps of the whole stage; `epochs`: the epochs that STEPS steps took.

    For an ensemble, the steps of all members count.
    """
    stated = stage.steps
    if stated is None and not isinstance(stage, PolicyGradientStage):
        whole = stage.args.num_train_epochs
        stated = ceil(round(whole / (epochs / STEPS), 3)) if epochs else STEPS
    return present(stated) * getattr(stage, "members", 1)


def seconds_a_step(stage: Stage, first: float, later: float) -> float:
    """Return the mean seconds of a step, from the seconds of the first step and of a later step.

    If a rollout is used for several steps, only the first of them pays for it.
    """
    uses = max(1.0, stage.steps_a_rollout) if isinstance(stage, RolloutStage) else 1.0
    return later if uses < STEPS else (first + (uses - 1) * later) / uses


def cut_evaluation(config: Config) -> Shortened:
    """Return the evaluation with so few items that no task draws more than COMPLETIONS completions."""
    tasks, whole, left, unknown = {}, 0.0, 0.0, []
    for name, task in config["tasks"].items():
        samples = task.get("samples") or 1
        most_items = max(1, COMPLETIONS // samples)
        items = task.get("items")
        tasks[name] = {**task, "items": min(items or most_items, most_items)}
        if items is None:
            unknown.append(name)
            continue
        tokens = samples * (task.get("max_gen_toks") or 1)
        whole, left = whole + items * tokens, left + tasks[name]["items"] * tokens
    return Shortened({**config, "tasks": tasks}, left / whole if whole else 1.0, tuple(unknown))


def barely(config: Config) -> Config:
    """Return an evaluation, or a stage that draws, cut to one token of one item, to measure the loading."""
    if "tasks" not in config:
        return {**config, "problems": 1, "args": {**config["args"], "max_completion_length": 1}}
    small = {name: {**task, "items": 1} for name, task in config["tasks"].items()}
    cut = {
        name: {**task, "max_gen_toks": 1} if "max_gen_toks" in task else task for name, task in small.items()
    }
    return {**config, "tasks": cut}


def whole_s(loading: float, cut: float, share: float) -> float:
    """Return the estimated seconds of a whole job, loading included.

    `loading` is the seconds of loading alone; `cut` is the seconds of a job that loaded and then did only
    the `share` of the work.
    """
    return loading + max(cut - loading, 0.0) / share


@dataclass(frozen=True)
class Made:
    """The outcome of a job; if the job failed, `failure` says why in one line."""

    out: Path  # metrics.json of a stage, or the scores of an evaluation
    wall_s: float
    failure: str | None = None

    def content(self, name: str = "") -> dict[str, Any]:
        """Return the content of `out`, or of the file `name` beside it."""
        path = self.out.with_name(name) if name else self.out
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return data

    def curve(self) -> list[list[str]]:
        """Return the rows step, metric, value of a stage's curve.csv."""
        with self.out.with_name("curve.csv").open(encoding="utf-8", newline="") as file:
            return [*csv.reader(file)][1:]

    @property
    def product_mib(self) -> float:
        """The size of the stage's product in MiB."""
        return sum(sentinel.read_sentinel(self.out)["files"].values()) / 2**20


def in_a_process(words: Sequence[str], threads: int, log: Path) -> int:
    """Run `python -m` with these words as the workflow's rules do; return the exit status.

    The standard error goes to the file `log`.
    """
    several = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with log.open("w", encoding="utf-8") as stderr:
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, stderr=stderr, env=os.environ | several, check=False).returncode


def run_stage(
    config: Config,
    inputs: Mapping[str, Path],
    seed: int,
    machine: Sequence[str],
    place: tuple[str, Path],
    run: Runner,
) -> Made:
    """Run a stage; `machine` are the options on its GPUs, and `place` is its name and its folder."""
    name, folder = place
    out = folder / "metrics.json"
    threads = config.get("threads", 1)
    words = [
        *("encore.stages", config["run"], "--config", json.dumps(config, sort_keys=True)),
        *("--seed", str(seed), *_options(inputs), "--name", name, "--checkpoints", str(folder / "state")),
        *("--threads", str(threads), *machine, "--out", str(out)),
    ]
    return _done(words, threads, folder, out, run)


def run_evaluation(
    config: Config,
    model: str,
    inputs: Mapping[str, Path],
    gpus: int,
    place: tuple[str, Path],
    run: Runner,
) -> Made:
    """Run an evaluation of `model`, a stage's metrics.json or `hub:` and the name that a recipe gives."""
    name, folder = place
    out = folder / "scores.json"
    words = [
        *("evals.evaluate", "--config", json.dumps(config, sort_keys=True), "--model", model),
        *_options(inputs),
        *("--name", name, "--gpus", str(gpus), "--out", str(out), "--samples", str(folder / "samples.jsonl")),
    ]
    return _done(words, 1, folder, out, run)


def _options(inputs: Mapping[str, Path]) -> list[str]:
    return [word for role, path in inputs.items() for word in ("--input", f"{role}={path}")]


def _done(words: Sequence[str], threads: int, folder: Path, out: Path, run: Runner) -> Made:
    folder.mkdir(parents=True, exist_ok=True)
    log, began = folder / "log.txt", time.perf_counter()
    status = run(words, threads, log)
    spent = time.perf_counter() - began
    print(log.read_text(encoding="utf-8", errors="replace"), end="", file=sys.stderr, flush=True)
    return Made(out, spent, why(status, log) if status or not out.exists() else None)


def why(status: int, log: Path) -> str:
    """Return the line of the log that says why a job failed, and what would help."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    lines = [line for line in lines if line]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    last = next(reversed([line for line in lines if "Error" in line]), lines[-1] if lines else "")
    line = errors[-1] if errors else last or f"exit status {status}, and an empty log"
    if "out of memory" in line or "OutOfMemory" in line:
        return f"{line.partition(' GPU ')[0]}; {ROOM}"
    if status in (-9, 137):
        return f"it was killed, most likely for the host's memory; {ROOM}"
    return line
