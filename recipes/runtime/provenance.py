"""provenance.json: where a checkpoint comes from and what it cost. The only output with times in it."""

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "trl", "accelerate", "datasets", "tokenizers", "safetensors", "vllm")


@dataclass(frozen=True)
class Fit:
    """What a finished training, or other work of a stage, was."""

    history: list[dict[str, Any]]
    steps: int
    tokens: int
    wall_s: float
    resumed: int


def now() -> str:
    """UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> tuple[str | None, bool | None]:
    """Commit of this code and whether the tree differs from it; None, None outside a git checkout."""
    root = Path(__file__).resolve().parents[2]

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *words], cwd=root, capture_output=True, text=True, timeout=10, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    head = git("rev-parse", "HEAD")
    changes = git("status", "--porcelain", "--untracked-files=no") if head else None
    return head, None if changes is None else bool(changes)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a run's numbers."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The processor's name, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def hardware() -> dict[str, Any]:
    """Processor, cores, threads used, and the GPUs if there are any."""
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
    }


def record(started: str, done: Fit, flops_a_token: float, formula: str) -> dict[str, Any]:
    """The content of provenance.json. wall_s: training seconds over all resumed parts, without loading."""
    head, dirty = commit()
    return {
        "commit": head,
        "dirty": dirty,
        "versions": versions(),
        "hardware": hardware(),
        "started": started,
        "wall_s": round(done.wall_s, 3),
        "resumed": done.resumed,
        "steps": done.steps,
        "tokens": done.tokens,
        "tokens_per_s": round(done.tokens / done.wall_s, 1) if done.wall_s > 0 else None,
        "flops": flops_a_token * done.tokens,
        "flops_formula": formula,
    }
