"""The pinning of users' files, code and models that a configuration names, by digests of their content.

Data sets and models of the Hub need no digest, because a configuration names their commit.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from encore import own_code
from encore.runtime import digests, sentinel


def pinned(config: Any) -> Any:
    """Return `config` with digests added, at any depth: `sha256` beside each existing `file`.

    Beside the names of users' code it adds `code`: name -> digest. So changed content gives another lineage,
    and everything made from it is made again.
    """
    if isinstance(config, list):
        return [pinned(value) for value in config]
    if not isinstance(config, dict):
        return config
    pinned_keys = {key: pinned(value) for key, value in config.items()}
    rewards = pinned_keys["rewards"] if isinstance(pinned_keys.get("rewards"), dict) else {}
    keys = ("world", "environment", "verifier", "objective")
    names = [*(pinned_keys.get(key) for key in keys), *rewards]
    if code := {name: own_code.digest(name) for name in names if own_code.is_own(name)}:
        pinned_keys["code"] = code
    is_file = (
        isinstance(pinned_keys.get("file"), str) and "wheel" not in pinned_keys
    )  # other files are in a package
    path = Path(pinned_keys["file"]) if is_file else None
    if path is None or not path.is_file():
        return pinned_keys
    stat = path.stat()
    return pinned_keys | {"sha256": _digest(path, stat.st_size, stat.st_mtime_ns)}


def unpinned(config: Any) -> Any:
    """Return a job's config without the digests of users' code, which only the lineage needs."""
    if isinstance(config, list):
        return [unpinned(value) for value in config]
    if not isinstance(config, Mapping):
        return config
    return {key: unpinned(value) for key, value in config.items() if key != "code"}


def of_model(model: Mapping[str, Any] | None) -> Any:
    """Return `model`, with the `digest` of its content added if it is a folder or a user's GGUF file."""
    if model is not None and "gguf" in model and (file := Path(model["gguf"])).is_file():
        return {**model, "digest": _digest(file, file.stat().st_size, file.stat().st_mtime_ns)}
    if model is None or "path" not in model or not Path(model["path"]).is_dir():
        return model
    files = sorted(file for file in Path(model["path"]).rglob("*") if file.is_file())
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return {**model, "digest": _digest_of_folder(model["path"], tuple(stats))}


@cache
def _digest_of_folder(folder: str, stats: tuple[tuple[str, int, int], ...]) -> str:
    """Return the digest of a folder; the cache notices a change by `stats` of the files."""
    return sentinel.digest(Path(folder))


@cache
def _digest(path: Path, size: int, changed: int) -> str:
    """Return the digest of a file; the cache notices a change by its size and modification time."""
    return digests.of_file(path)
