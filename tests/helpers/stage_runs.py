"""Runs tiny stages in processes forked from a server that has torch and TRL loaded: a run takes a second."""

import contextlib
import gc
import json
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import Any

from encore.data import demonstrations, preferences
from encore.runtime import files, sentinel

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
os.environ["OMP_NUM_THREADS"] = "1"

PRELOAD = [
    "encore.stages.__main__",
    "encore.stages.grpo",
    "encore.stages.pretrain",
    "datasets",
    "transformers.models.qwen3.modeling_qwen3",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "pytest",  # a trap is a function of a test module
]
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(PRELOAD)

AT_ONCE = 2  # stages that run side by side

TASK = {"world": "chain", "terms": [2, 3]}
TEMPLATE = "<user>{question}<assistant>"
PRETRAIN: dict[str, Any] = {
    "task": TASK,
    "template": TEMPLATE,
    "corpus": {"documents": 96, "mixture": {"direct": 0.4, "chain": 0.6}},
    "model": {"hidden_size": 32, "layers": 1, "head_dim": 32, "max_position_embeddings": 64},
    # 3 steps an epoch, 6 epochs; checkpoints and log lines seldom fall together
    "args": {
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 4,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "cosine",
        "max_steps": 18,
        "save_steps": 4,
        "logging_steps": 3,
    },
}
GRPO: dict[str, Any] = {
    "task": TASK,
    "template": TEMPLATE,
    "problems": 9,
    "rewards": {"accuracy": 1.0, "format": 0.5, "random": 0.5},
    # 4 updates a rollout of 4 prompts x 4 completions, 2 rollouts an epoch; the reference follows the policy
    "args": {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 4,
        "num_generations": 4,
        "num_iterations": 1,
        "max_completion_length": 12,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "linear",
        "loss_type": "grpo",
        "beta": 0.04,
        "sync_ref_model": True,
        "ref_model_sync_steps": 5,
        "max_steps": 26,
        "save_steps": 3,
        "logging_steps": 2,
    },
}

REINFORCE: dict[str, Any] = {
    "task": TASK,
    "template": TEMPLATE,
    "problems": 9,
    "rewards": {"format": 1.0, "random": 0.5},
    "args": {
        "learning_rate": 1e-2,
        "epochs": 6,
        "inner_steps": 3,
        "prompts_per_epoch": 2,
        "num_generations": 4,
        "delta": "centered",
        "loss": "naive",
        "max_completion_length": 12,
    },
}


def command(kind: str, config: dict[str, Any], **inputs: str) -> list[str]:
    """Arguments of a stage whose files lie in the working folder."""
    given = [text for role, path in inputs.items() for text in ("--input", f"{role}={path}")]
    return [
        *("--config", json.dumps(config, sort_keys=True), "--seed", "3", "--name", f"r/cpu/a/seed3/{kind}"),
        *("--checkpoints", f"checkpoints/{kind}", "--out", f"results/{kind}/metrics.json", *given),
    ]


def arguments_of(kind: str) -> list[str]:
    if kind == "pretrain":
        return command(kind, PRETRAIN)
    return command(kind, GRPO, policy="results/pretrain/metrics.json")


def fresh(kind: str, base: Path, folder: Path) -> Path:
    """Where the stage can begin: for `grpo`, `folder` as a copy of `base`."""
    if kind == "grpo":
        shutil.copytree(base, folder)
    return folder


def start(kind: str, arguments: list[str], folder: Path, trap: Any = None) -> multiprocessing.Process:
    """Start a stage in `folder`, where its output goes to out.txt and err.txt; `trap()` runs in it first."""
    folder.mkdir(parents=True, exist_ok=True)
    process = FORK.Process(target=child, args=(kind, arguments, folder, trap))
    process.start()
    return process


def finish(process: multiprocessing.Process) -> int:
    """Wait for a stage; its exit status (negative: the signal that ended it)."""
    process.join(120)
    assert process.exitcode is not None, "the stage hangs"
    return process.exitcode


def run(kind: str, arguments: list[str], folder: Path, trap: Any = None) -> int:
    return finish(start(kind, arguments, folder, trap))


def run_all(stages: list[tuple[Any, ...]]) -> list[int]:
    """Exit statuses of many stages, each with the arguments of `start`, a few of them at a time."""
    started: list[multiprocessing.Process] = []
    for stage in stages:
        running = [process for process in started if process.is_alive()]
        if len(running) == AT_ONCE:
            connection.wait([process.sentinel for process in running], 120)
        started.append(start(*stage))
    return [finish(process) for process in started]


def child(kind: str, arguments: list[str], folder: Path, trap: Any) -> None:
    from encore.stages.__main__ import main

    gc.freeze()  # what the server has loaded is no garbage
    os.chdir(folder)
    with (
        open("out.txt", "a") as out,
        open("err.txt", "a") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        if trap:
            trap()
        sys.argv = ["encore.stages", kind, *arguments]  # as from a command line: Ctrl-C is this process's
        status = main()
        for stream in (out, err):
            with contextlib.suppress(OSError):  # as Python does at its end: a full disk is no other status
                stream.flush()
        os._exit(status)


def die() -> None:
    """What `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def nan_score() -> None:
    """Have every reward model of the child score the last completion with nan."""
    from encore.models import reward_model as reward_models

    plain = reward_models.RewardModel.score

    def score(self, prompts, completions):
        scores = plain(self, prompts, completions)
        scores[0, -1] = float("nan")
        return scores

    reward_models.RewardModel.score = score


def at_training_step(number: int) -> None:
    """Die at the start of a micro-step, counted from 1."""
    from encore.learning.resumable import Resumable

    plain, seen = Resumable.training_step, []

    def step(self, *args, **kwargs):
        seen.append(1)
        if len(seen) == number:
            die()
        return plain(self, *args, **kwargs)

    Resumable.training_step = step


def require_resumed(make: Callable[[str], tuple[str, list[str], Path]], kills: list[int]) -> None:
    """Require of a stage that it ends with the same outputs, whichever of its micro-steps it is killed at.

    `make` takes the name of a folder, and returns kind, arguments and folder of the stage.
    """
    kind, _, whole = unbroken = make("whole")
    assert run(*unbroken) == 0, (whole / "err.txt").read_text()
    stages = [make(str(number)) for number in kills]
    killed = [
        (*stage, partial(at_training_step, number)) for stage, number in zip(stages, kills, strict=True)
    ]
    assert run_all(killed) == [-9] * len(kills)
    assert run_all(stages) == [0] * len(kills)
    expected = outputs(whole, kind)
    for _, _, folder in stages:
        assert outputs(folder, kind) == expected, folder.name


def error_line(folder: Path) -> str:
    """The one error line of a failed stage: on stdout, and as the last line of the log."""
    lines = [line for line in (folder / "out.txt").read_text().splitlines() if "error:" in line]
    assert len(lines) == 1, lines
    log = (folder / "err.txt").read_text()
    assert "Traceback" not in log
    assert log.splitlines()[-1].removeprefix("error: ") in lines[0]
    return lines[0]


def finished(folder: Path) -> Path:
    """The metrics.json of a stage whose product is `folder`/final."""
    final = folder / "final"
    record = {"model": str(final), "digest": sentinel.digest(final), "files": sentinel.sizes(final)}
    files.write_json(folder / "metrics.json", record)
    return folder / "metrics.json"


def rows_product(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """The metrics.json of a stage whose product is demonstrations."""
    demonstrations.save(rows, folder / "final")
    return finished(folder)


def preferences_product(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """The metrics.json of a stage whose product is preferences."""
    preferences.save(rows, folder / "final")
    return finished(folder)


def outputs(folder: Path, kind: str) -> dict[str, bytes]:
    """The weights and all other outputs that a repeated run must give again, byte by byte."""
    result, model = folder / "results" / kind, folder / "checkpoints" / kind / "final"
    names = ["metrics.json", "curve.csv"] + (
        ["completions.jsonl", "ratios.csv"] if kind in ("grpo", "ppo", "distillation") else []
    )
    return {name: (result / name).read_bytes() for name in names} | {
        path.name: path.read_bytes() for path in sorted(model.iterdir())
    }
