"""A disk that is full while something is saved: one line, whatever the library called it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from recipes.errors import UserError


@contextmanager
def saving(what: str, folder: Path, then: str = "") -> Iterator[None]:
    """Turn a failed write within into a UserError that names `what`, `folder` and the space left there.

    A full disk is an OSError to Python, a SafetensorError to safetensors and a RuntimeError about "unexpected
    pos" to torch.
    """
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        raise UserError(
            f"cannot save {what} in {folder}, {shutil.disk_usage(folder).free / 2**20:.1f} MiB free there: "
            f"{(str(error).strip().splitlines() or [type(error).__name__])[0]}; {then}"
            "make room and run the same command again"
        ) from error
