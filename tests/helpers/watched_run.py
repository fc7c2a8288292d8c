"""A small folder of results as a run leaves it while it goes on, made by what writes such files."""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from encore.learning.completions import CompletionsLog, Record
from encore.runtime import curves, live_curve
from encore.runtime.progress import Progress
from snakemake_logger_plugin_encore import PLANNED

RUN = "toy/cpu"
STEPS = 40


@dataclass
class Training:
    """A training that goes on: what its job and its trainer write."""

    root: Path
    path: str  # toy/cpu/arm/seedN/grpo
    step: int = 0
    progress: Progress = field(init=False)
    completions: CompletionsLog = field(init=False)

    def __post_init__(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.state.mkdir(parents=True, exist_ok=True)
        with self.log.open("w", buffering=1) as stderr, contextlib.redirect_stderr(stderr):
            self.progress = Progress(self.path, StringIO(), every=0.0)
        assert self.progress.log
        self.progress.log = self.log.open("a", buffering=1)
        live_curve.begin(self.state, [])
        self.completions = CompletionsLog(self.state / "completions.jsonl")
        self.progress.start(0, STEPS)

    @property
    def log(self) -> Path:
        return self.root / "results" / self.path / "train.log"

    @property
    def state(self) -> Path:
        return self.root / "checkpoints" / self.path / "0123456789ab"

    def go_on(self, steps: int, text: str = "<think>1+1=2</think>") -> None:
        """Make steps, each with a rollout of two questions and four completions of each."""
        for _ in range(steps):
            self.step += 1
            entry = measured(self.step)
            live_curve.add(self.state, entry)
            self.completions.append(rollout(self.step, text), 4)
            self.progress.step(self.step, STEPS, entry, self.step * 900.0)
        self.completions.flush()

    def end(self) -> None:
        """Leave what a stage that is done leaves: its results, and no training state."""
        folder = self.log.parent
        rows = curves.rows([measured(step) for step in range(1, self.step + 1)])
        (folder / "curve.csv").write_text(curves.text(rows))
        (folder / "completions.jsonl").write_bytes((self.state / "completions.jsonl").read_bytes())
        health = [{"check": "zero_variance", "ok": False, "message": "60% of groups have zero variance"}]
        health.append({"check": "accuracy", "ok": True, "message": "accuracy rose"})
        (folder / "metrics.json").write_text(json.dumps({"health": health}))
        live_curve.path(self.state).unlink()


def measured(step: int) -> dict[str, float]:
    return {
        "step": step, "reward": step / STEPS, "accuracy": step / STEPS, "entropy": 1 / step,
        "completions/mean_length": 30.0 + step, "kl": 0.01 * step, "loss": 0.0, "num_tokens": 900.0 * step,
    }  # fmt: skip


def rollout(step: int, text: str) -> list[Record]:
    return [
        {
            "step": step, "prompt": f"question {question} of step {step}", "completion": text, "answer": "2",
            "tokens": 9, "eos": place > 0, "reward": float(place > 1), "advantage": place - 1.5,
            "rewards": {"accuracy": float(place > 1)},
        }
        for question in (1, 2)
        for place in range(4)
    ]  # fmt: skip


def make(root: Path) -> dict[str, Training]:
    """Make a run of two arms and two seeds in `root`; return what runs by its arm and seed.

    One training is done, one goes on and has warned, one has failed; the last one and all evaluations wait.
    """
    trainings = {
        name: Training(root, f"{RUN}/{name}/grpo") for name in ("a/seed0", "a/seed1", "base-recipe/seed0")
    }
    for training in trainings.values():
        training.go_on(12)
    done, runs, failed = trainings.values()
    done.end()
    runs.progress.warn("55.0% of groups have zero variance (limit 50%) at step 12")
    with failed.log.open("a") as stream:
        stream.write("Traceback (most recent call last):\n  File x\nMemoryError: no room\n")
    plan(root, {f"train {RUN}/base-recipe/seed1/grpo": 100.0} | {
        f"train {RUN}/{name}/grpo": 100.0 for name in trainings
    } | {f"evaluate {RUN}/{name}/after": 10.0 for name in trainings})  # fmt: skip
    return trainings


def plan(root: Path, seconds: Mapping[str, float]) -> None:
    """Leave the plan of a run that was started a minute ago."""
    path = root / PLANNED
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(seconds))
    age(path, 60.0)


def age(path: Path, seconds: float) -> None:
    """Have a file look as if it had last changed so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def files(root: Path) -> Iterator[Path]:
    """Yield every file of the run."""
    yield from (path for path in root.rglob("*") if path.is_file())
