"""A stage or an evaluation run by its ordinary command, in a process of its own, and what came of it."""

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.runtime import sentinel

Runner = Callable[[Sequence[str], int, Path], int]  # module and arguments, threads, log -> exit status
ROOM = "a smaller per_device_train_batch_size (with global_batch the result stays), gradient_checkpointing, "
ROOM += "lora or resources.shard: fsdp would help"


@dataclass(frozen=True)
class Made:
    """A job's outcome; where it failed, `failure` says why in one line."""

    out: Path  # metrics.json of a stage, the scores of an evaluation
    wall_s: float
    failure: str | None = None

    def read(self, name: str = "") -> dict[str, Any]:
        """What is in `out`, or in the file `name` beside it."""
        path = self.out.with_name(name) if name else self.out
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return data

    def curve(self) -> list[list[str]]:
        """The rows step, metric, value of a stage's curve.csv."""
        with self.out.with_name("curve.csv").open(encoding="utf-8", newline="") as file:
            return [*csv.reader(file)][1:]

    @property
    def product_mib(self) -> float:
        """Size of what a stage has made."""
        return sum(sentinel.read(self.out)["files"].values()) / 2**20


def in_a_process(words: Sequence[str], threads: int, log: Path) -> int:
    """`python -m` with these words, its stderr to `log`, as the rules of the workflow run it."""
    several = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with log.open("w", encoding="utf-8") as stderr:
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, stderr=stderr, env=os.environ | several, check=False).returncode


def stage(
    config: Mapping[str, Any],
    inputs: Mapping[str, Path],
    seed: int,
    machine: Sequence[str],
    place: tuple[str, Path],
    run: Runner,
) -> Made:
    """Run a stage; `machine`: the options that say on how many GPUs; `place`: its name, and its folder."""
    name, folder = place
    out = folder / "metrics.json"
    threads = config.get("threads", 1)
    words = [
        *("encore.stages", config["run"], "--config", json.dumps(config, sort_keys=True)),
        *("--seed", str(seed), *_options(inputs), "--name", name, "--checkpoints", str(folder / "state")),
        *("--threads", str(threads), *machine, "--out", str(out)),
    ]
    return _done(words, threads, folder, out, run)


def evaluation(
    config: Mapping[str, Any],
    model: str,
    inputs: Mapping[str, Path],
    gpus: int,
    place: tuple[str, Path],
    run: Runner,
) -> Made:
    """Run an evaluation of `model`: a stage's metrics.json, or `hub:` with what a recipe names."""
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
    """The line of the log that says why a job failed, and what would help."""
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
