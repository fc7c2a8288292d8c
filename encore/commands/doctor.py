"""The command `encore doctor`: what this machine can do, without loading torch if that is possible."""

import os
import platform
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

import psutil
from packaging.requirements import Requirement

from encore.errors import UserError
from encore.runtime import gpus, suite
from encore.sandbox.pool import Limits, Sandbox

EXTRAS = {
    "vllm": "vllm",
    "bitsandbytes": "qlora",
    "liger_kernel": "liger",
    "snakemake_executor_plugin_slurm": "slurm",
}
SMALL = 20e9  # bytes of disk; a run at scale cpu and its checkpoints never take more


class Finding(NamedTuple):
    good: bool | None  # None means neither good nor bad
    what: str

    def __str__(self) -> str:
        return f"{ {True: 'ok  ', False: 'WARN', None: '-   '}[self.good] } {self.what}"


def findings() -> Iterator[Finding]:
    """Yield what this machine has and lacks, cheap checks first; each finding is a line of the output."""
    yield Finding(True, f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.platform()}")
    yield from _packages()
    for package, extra in EXTRAS.items():
        version = _version(package.replace("_", "-"))
        yield Finding(
            None,
            f"{package} {version}" if version else f"{package}: not installed; {suite.install(extra)}",
        )
    yield from _gpus()
    yield _sandbox()
    sbatch = shutil.which("sbatch")
    yield Finding(None, f"Slurm: {sbatch}" if sbatch else "Slurm: no sbatch here; jobs run on this machine")
    memory = psutil.virtual_memory()
    yield Finding(
        memory.available > 4e9, f"memory: {memory.available / 1e9:.0f} of {memory.total / 1e9:.0f} GB free"
    )
    free = shutil.disk_usage(Path()).free
    yield Finding(free > SMALL, f"disk: {free / 1e9:.0f} GB free in {Path().resolve()}")
    if suite.is_clone():
        yield Finding(True, "this is a clone of Encore: snakemake and encore use its Snakefile and recipes")
    else:
        where = f"encore uses the Snakefile, recipes and profiles in {suite.folder()}"
        yield Finding(True, f"{where}; snakemake finds them in a clone alone")


def _packages() -> Iterator[Finding]:
    """Yield one finding: which pinned packages are missing or in another version, or that all are right."""
    pinned = [Requirement(text) for text in requires(suite.NAME) or [] if "extra ==" not in text]
    odd = []
    for requirement in pinned:
        version = _version(requirement.name)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            odd.append(f"{requirement.name} {version or 'is missing'} ({requirement.specifier})")
    if odd:
        yield Finding(False, f"not as pinned: {', '.join(odd)}; install Encore anew")
    else:
        yield Finding(True, f"all {len(pinned)} pinned packages are installed, torch {_version('torch')}")


def _gpus() -> Iterator[Finding]:
    """Yield findings: the GPUs, whether torch can use them, and whether Triton can compile for them."""
    command = ["nvidia-smi", "--query-gpu=name,memory.total,memory.used", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        yield Finding(None, "GPUs: none that nvidia-smi knows; scale cpu needs none")
        return
    yield Finding(True, f"GPUs: {'; '.join(done.stdout.strip().splitlines())}")
    why = gpus.unusable(1)
    yield Finding(not why, f"GPUs: {why or f'torch can use them; the NVIDIA driver is {gpus.driver()}'}")
    yield _compiler()


def _compiler() -> Finding:
    """Return the finding on whether Triton, with which TRL computes losses on a GPU, has a C compiler."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    header = Path(sysconfig.get_path("include"), "Python.h")
    lacking = [] if compiler else ["a C compiler (gcc or clang)"]
    lacking += [] if header.is_file() else [f"Python.h (looked for in {header.parent})"]
    if lacking:
        what = f"Triton lacks {' and '.join(lacking)}, so training on the GPU fails"
        return Finding(False, f"{what}; apt-get install gcc python3-dev")
    return Finding(True, f"Triton: {compiler}, {header}")


def _sandbox() -> Finding:
    """Return the finding on whether the sandbox starts: many containers do not let bubblewrap start."""
    try:
        Sandbox(Limits()).close()
    except UserError as error:
        return Finding(None, f"{error}. Only rewards and verifiers that run programs need it")
    return Finding(True, "sandbox: it starts, for rewards and verifiers that run programs")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
