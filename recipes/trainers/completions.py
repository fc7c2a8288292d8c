"""completions.jsonl: every sampled completion with its rewards; cut back on resume, so no row is twice."""

import json
import os
from pathlib import Path
from typing import Any

from recipes.errors import UserError


class CompletionsLog:
    """An append-only JSONL file whose length is part of the checkpoint."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("ab")

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Add one line a row."""
        self.file.write("".join(json.dumps(row) + "\n" for row in rows).encode())

    def flush(self) -> int:
        """Put the lines on the disk; the file's length in bytes."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.file.tell()

    def cut(self, length: int) -> None:
        """Forget all but the first `length` bytes. Raises UserError where the file is shorter."""
        self.file.flush()
        if self.path.stat().st_size < length:
            raise UserError(
                f"{self.path}: shorter than its checkpoint says; "
                f"delete {self.path.parent} to start this stage again"
            )
        self.file.truncate(length)
        self.file.seek(0, os.SEEK_END)

    def close(self) -> None:
        self.file.close()
