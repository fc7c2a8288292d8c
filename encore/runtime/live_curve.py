"""curve.csv of a training that is under way, in the folder of its training state.

Not beside the stage's results: what a job declares as its output Snakemake removes if the job fails. Once the
stage is done, its curve.csv stands there, with the rows of this one (of a reward model the mean of its
members), and this one is removed with the training state.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from encore.runtime import curves, files, gpus


def path(folder: Path) -> Path:
    """The curve of the training whose state is kept in `folder`."""
    return folder / "curve.csv"


def begin(folder: Path, history: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows of `history`, the log up to the step that training goes on from, and no later ones."""
    files.write(path(folder), curves.text(curves.deterministic(curves.rows(history))))


def add(folder: Path, entry: Mapping[str, Any]) -> None:
    """Append the rows of a log entry by a single write, which a kill comes before or after.

    Of several processes of a stage only the first one writes.
    """
    if gpus.first():
        rows = curves.lines(curves.deterministic(curves.rows([entry])))
        with path(folder).open("ab", buffering=0) as file:
            file.write(rows.encode())
