"""A stage's product of JSON rows: written completely or not at all, with columns checked when it is read."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from encore.errors import UserError, nearest
from encore.runtime import files, sentinel
from encore.runtime.files import saving

Row = dict[str, Any]


def save(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], folder: Path, file: str) -> None:
    """Write the `columns` of `rows` to `folder`/`file`, and remove all other files of the folder."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    lines = [json.dumps({name: row[name] for name in columns}) + "\n" for row in rows]
    with saving("the data", folder.parent):
        files.write(partial / file, "".join(lines))
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def load(metrics_json: Path, file: str, columns: Sequence[str], what: str) -> list[Row]:
    """Return the rows that an upstream stage has saved in `file`; error messages call them `what`.

    Raises UserError if they are missing or changed, if the stage has made something else, or if a row lacks
    one of `columns`.
    """
    folder, _ = sentinel.product(metrics_json)
    path = folder / file
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise UserError(f"{metrics_json}: its stage has made no {what}: there is no {path}") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}: line {number}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}: line {number}: expected a JSON object with the columns of {what}")
        for name in columns:
            if name not in row:
                raise UserError(f"{path}: line {number}: no column {name!r}{nearest(name, [*row])}")
        rows.append(row)
    return rows
