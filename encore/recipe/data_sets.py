"""Data sets that a configuration names: of the Hub at a commit, files of one's own by their content.

Likewise code of one's own, and models in folders.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from encore import own_code
from encore.runtime import digests, sentinel


def pinned(config: Any) -> Any:
    """`config` with the `sha256` of its content beside each `file` that is there, at any depth.

    Likewise `code` beside what is of one's own code, as name -> digest. So another content gives another
    lineage, and what it leads to is made again.
    """
    if isinstance(config, list):
        return [pinned(value) for value in config]
    if not isinstance(config, dict):
        return config
    own = {key: pinned(value) for key, value in config.items()}
    rewards = own["rewards"] if isinstance(own.get("rewards"), dict) else {}
    names = [own.get("world"), own.get("verifier"), own.get("objective"), *rewards]
    if code := {name: own_code.digest(name) for name in names if own_code.is_own(name)}:
        own["code"] = code
    is_file = isinstance(own.get("file"), str) and "wheel" not in own  # else it lies in a package
    path = Path(own["file"]) if is_file else None
    if path is None or not path.is_file():
        return own
    stat = path.stat()
    return own | {"sha256": _digest(path, stat.st_size, stat.st_mtime_ns)}


def unpinned(config: Any) -> Any:
    """Return a job's config without the digests of own code, which shape the lineage alone."""
    if isinstance(config, list):
        return [unpinned(value) for value in config]
    if not isinstance(config, Mapping):
        return config
    return {key: unpinned(value) for key, value in config.items() if key != "code"}


def of_model(model: Mapping[str, Any] | None) -> Any:
    """A model as it is named; one in a folder or a GGUF file of one's own with the digest of its content."""
    if model is not None and "gguf" in model and (file := Path(model["gguf"])).is_file():
        return {**model, "digest": _digest(file, file.stat().st_size, file.stat().st_mtime_ns)}
    if model is None or "path" not in model or not Path(model["path"]).is_dir():
        return model
    files = sorted(file for file in Path(model["path"]).rglob("*") if file.is_file())
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return {**model, "digest": _digest_of_folder(model["path"], tuple(stats))}


@cache
def _digest_of_folder(folder: str, stats: tuple[tuple[str, int, int], ...]) -> str:
    """The digest of a folder whose files have these sizes and times of change."""
    return sentinel.digest(Path(folder))


@cache
def _digest(path: Path, size: int, changed: int) -> str:
    """The digest of a file that has this size and time of change."""
    return digests.of_file(path)
