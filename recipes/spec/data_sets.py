"""Data sets that a configuration names: of the Hub at a commit, files of one's own by their content."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from recipes.runtime.files import digest


def is_data_set(task: Mapping) -> bool:
    """Whether a task is one, and no world."""
    return "hub" in task or "file" in task


def evaluated(evals: Mapping[str, Any]) -> dict[str, Mapping]:
    """Name -> the data set of each task of an arm's evaluations that has one."""
    tasks = {name: task.get("task", {}) for name, task in evals.get("tasks", {}).items()}
    return {name: task for name, task in tasks.items() if is_data_set(task)}


def pinned(config: Any) -> Any:
    """`config` with the `sha256` of its content beside each `file` that is there, at any depth.

    So another content gives another lineage, and what it leads to is made again.
    """
    if isinstance(config, list):
        return [pinned(value) for value in config]
    if not isinstance(config, dict):
        return config
    own = {key: pinned(value) for key, value in config.items()}
    path = Path(own["file"]) if isinstance(own.get("file"), str) else None
    if path is None or not path.is_file():
        return own
    stat = path.stat()
    return own | {"sha256": _digest(path, stat.st_size, stat.st_mtime_ns)}


@cache
def _digest(path: Path, size: int, changed: int) -> str:
    """The digest of a file that has this size and time of change."""
    return digest(path)
