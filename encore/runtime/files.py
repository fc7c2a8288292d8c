"""Files that are written completely or not at all; a full disk is reported in one line."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from encore.errors import UserError, first_line
from encore.runtime import gpus

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
TORCH_SAYS = ("unexpected pos", "iostream error")


def _no_room(error: Exception) -> bool:
    """Return whether `error` says that a file could not grow.

    On a full disk Python raises an OSError, safetensors a SafetensorError, and torch a RuntimeError: about an
    "unexpected pos" or, before the first bytes, an "iostream error".
    """
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    return isinstance(error, SafetensorError) or any(words in str(error) for words in TORCH_SAYS)


@contextmanager
def saving(what: str, folder: Path, then: str = "") -> Iterator[None]:
    """Turn the error of a full disk into a UserError that names `what`, `folder` and the space left there."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if not _no_room(error):
            raise
        raise UserError(
            f"cannot save {what} in {folder}, {shutil.disk_usage(folder).free / 2**20:.1f} MiB free there: "
            f"{first_line(error)}; {then}"
            "make room and run the same command again"
        ) from error


def write(path: Path, text: str) -> None:
    """Write `text` to `path`, so that a reader sees either the old file or the whole new one.

    If a stage has several processes, only the first one writes.
    """
    if not gpus.first():
        return
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write deterministic JSON by `write`: sorted keys, no NaN."""
    write(path, json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + "\n")


def note(path: Path, data: dict[str, Any]) -> None:
    """Write JSON that only saves time, by `write_json`. Several processes may write the same file at once.

    A reader sees the whole file of one of them. If the file cannot be written, nothing is lost but time, so
    no error is raised.
    """
    with suppress(OSError), tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        whole = Path(folder) / path.name
        write_json(whole, data)
        whole.replace(path)
