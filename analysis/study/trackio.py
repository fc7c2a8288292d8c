"""The reader of a trackio database, a SQLite file for each project; it neither needs trackio nor writes."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from encore.errors import UserError, first_line

HEAD = b"SQLite format 3\0"  # beginning of every SQLite file
LONGEST_CELL = 1 << 24  # bytes of a cell of the database
PATIENCE = 60.0  # seconds that a query may take: a hostile database can ask for endless work


class Row(NamedTuple):
    """One call of trackio.log: `metrics` is a JSON object, as text or as bytes."""

    run: str
    step: object
    metrics: str | bytes


def rows(path: Path) -> Iterator[Row]:
    """Yield the rows of all runs, in the order in which they were logged.

    Raises UserError if the file is no database of trackio, if two of its runs have the same name, or if
    reading it takes too long.
    """
    # a journal beside the database has the newest rows of a run that still goes on; immutable would ignore it
    how = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    deadline = time.monotonic() + PATIENCE
    run_ids: dict[str, object] = {}
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True)) as database:
            database.row_factory = sqlite3.Row
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
            database.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
            database.execute("PRAGMA trusted_schema = OFF")
            for cells in database.execute("SELECT * FROM metrics ORDER BY id"):
                # older versions have no run id
                run, run_id = str(cells["run_name"]), dict(cells).get("run_id")
                if run_ids.setdefault(run, run_id) != run_id:
                    raise UserError(f"{path}: two runs have the name {run!r}: rename one in trackio")
                yield Row(run, cells["step"], cells["metrics"])
    except (sqlite3.Error, IndexError) as error:
        raise UserError(f"{path}: not a database of trackio: {first_line(error)}") from None
