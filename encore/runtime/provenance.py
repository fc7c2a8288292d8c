"""The file provenance.json, which says where a checkpoint comes from and what it cost.

No other file but timing.csv contains times.
"""

import os
import platform
import resource
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from encore.runtime import suite
from encore.runtime.health import Precision

PACKAGES = (
    "torch",
    "transformers",
    "trl",
    "accelerate",
    "peft",
    "datasets",
    "tokenizers",
    "safetensors",
    "vllm",
)


@dataclass(frozen=True)
class Fit:
    """A summary of a finished training, or of other work of a stage."""

    history: list[dict[str, Any]]  # the trainer's log
    steps: int
    tokens: int
    wall_s: float
    resumed: int  # number of times it was continued from a checkpoint
    # number of processes, and each process's part of the batch; {} if the work is not spread
    made_on: Mapping[str, int | str] = field(default_factory=dict)
    # the needs of a longer run of the same stage: `epochs` trained; seconds of this process's first step
    # (`first_step_s`) and of a later one (`step_s`); size of a resumable state (`state_mib`)
    rates: Mapping[str, float] = field(default_factory=dict)
    precision: Precision = "full"  # in which the model was trained, or that its sampler was rounded
    earlier_cpu_s: float = 0.0  # CPU seconds of the training in earlier processes


def untrained(tokens: int, began: float) -> Fit:
    """Return the summary of a stage without training steps, which began at `began` of time.perf_counter."""
    return Fit([], 0, tokens, time.perf_counter() - began, 0)


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> tuple[str | None, bool | None]:
    """Return the commit of this code, and whether tracked files differ from it; both None outside a clone.

    An installed package has no commit, even if its virtual environment lies in a checkout of something else.
    """
    head = None if suite.package() else git(suite.CODE, "rev-parse", "HEAD")
    changes = git(suite.CODE, "status", "--porcelain", "--untracked-files=no") if head else None
    return head, None if changes is None else bool(changes)


def git(folder: Path, *words: str) -> str | None:
    """Return the output of a command of git in a folder; None if it fails, as outside a checkout.

    GitPython is not used: it would call git for most commands too, and every job would have to import it.
    """
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide a run's numbers.

    Encore is among them if it is an installed package, for such code has no commit.
    """
    installed = {"python": platform.python_version()}
    if encore := suite.package():
        installed[suite.NAME] = str(encore)
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def processor() -> str:
    """Return the processor's name, as the operating system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def hardware() -> dict[str, Any]:
    """Return the processor, its cores, the threads that torch uses, and the GPUs."""
    import torch  # imported here, because runtime is also imported by code that must not load torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
    }


def gpu_memory() -> dict[str, int]:
    """Return the peak of torch's memory on this process's GPU, and the GPU's memory, in MiB; {} on a CPU."""
    import torch  # imported here, because runtime is also imported by code that must not load torch

    if not torch.cuda.is_available():
        return {}
    capacity = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    return {
        "gpu_memory_mib": torch.cuda.max_memory_reserved() // 2**20,
        "gpu_capacity_mib": capacity // 2**20,
    }


def record(
    started: str, done: Fit, flops_a_token: float, formula: str, training_flops: float
) -> dict[str, Any]:
    """Return the content of provenance.json.

    `training_flops` is 0 unless tokens are left out before training. It is added to `flops_a_token` times the
    number of all tokens.

    `wall_s` is the time without loading, over all parts of a resumed training. `cpu_s` (over all cores) is
    the time of this process and of the training in earlier processes. `memory_mib` (the peak) is of this
    process alone. Both include the imports of this process, unless it was forked from a process that had
    them.
    """
    head, dirty = commit()
    return {
        "commit": head,
        "dirty": dirty,
        "versions": versions(),
        "hardware": {**hardware(), **done.made_on},
        "started": started,
        "wall_s": round(done.wall_s, 3),
        "cpu_s": round(time.process_time() + done.earlier_cpu_s, 3),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        **gpu_memory(),
        "resumed": done.resumed,
        "steps": done.steps,
        **done.rates,
        "tokens": done.tokens,
        "tokens_per_s": round(done.tokens / done.wall_s, 1) if done.wall_s > 0 else None,
        "flops": flops_a_token * done.tokens + training_flops,
        **({"training_flops": training_flops} if training_flops else {}),
        "flops_formula": formula,
    }
