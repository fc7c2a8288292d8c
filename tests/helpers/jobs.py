"""Runs stages in the test's own process, as `encore.stages.__main__` does in a process of its own."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from encore.runtime.progress import Progress
from encore.stages.job import Job, typed
from encore.stages.outcome import Outcome


def stage(kind: str, config: Mapping[str, Any]) -> Any:
    """The stage of a configuration."""
    return typed(kind, config)[0]


def job(inputs: Mapping[str, Path], folder: Path, seed: int = 0) -> Job:
    """A job whose products go to `folder`."""
    return Job(inputs, seed, folder, folder / "metrics.json", Progress("test", io.StringIO()))


def run(
    module: Any, config: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, seed: int = 0
) -> Outcome:
    """Run the stage of a module of `encore.stages`; its products go to `folder`."""
    return module.run(stage(module.__name__.rpartition(".")[2], config), job(inputs, folder, seed))
