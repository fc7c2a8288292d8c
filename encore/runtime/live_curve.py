"""The file curve.csv of a running training, in the folder of its training state.

It does not lie beside the stage's results, because Snakemake removes the declared outputs of a job that
fails. When the stage is done, its curve.csv lies there, with the same rows (for a reward model their mean
over members), and this file is removed with the training state.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from encore.runtime import curves, files, gpus


def path(folder: Path) -> Path:
    """Return the curve of the training whose state is kept in `folder`."""
    return folder / "curve.csv"


def begin(folder: Path, history: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows of `history`, the log up to the step from which training continues."""
    files.write(path(folder), curves.text(curves.deterministic(curves.rows(history))))


def add(folder: Path, entry: Mapping[str, Any]) -> None:
    """Append the rows of a log entry by a single write, so that a kill comes before or after all of it.

    If the stage has several processes, only the first one writes.
    """
    if gpus.first():
        rows = curves.lines(curves.deterministic(curves.rows([entry])))
        with path(folder).open("ab", buffering=0) as file:
            file.write(rows.encode())
