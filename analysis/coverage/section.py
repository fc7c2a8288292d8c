"""Coverage: what a trained model solves that its base does not, and the reverse, within as many samples.

For a recipe with `coverage`; any other has no such section.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.coverage import drawings, rows
from analysis.coverage.compared import by_task
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.figures import Plan
from analysis.page.section import Contents, Made
from analysis.page.style import colours
from analysis.page.tables import Table, cells

NAME = "coverage"
TABLES = ("crossovers", "solved_sets")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    numbers = final(table)
    compared = by_task(run, numbers)
    if not compared:
        return Contents([])
    crossed, sets = rows.crossovers(numbers, compared), rows.solved(numbers, compared)
    return Contents(
        [
            Table(
                "crossovers",
                "Where pass@k of the base passes that of training",
                crossed,
                rows.crossovers_shown(crossed),
            ),
            Table(
                "solved_sets", "Problems solved by both, by one, by neither", sets, rows.solved_shown(sets)
            ),
        ],
        [
            Plan(
                "coverage",
                "pass@k of the base and of every arm",
                "Chance that one of k samples is right, with 95% bands. Where the dashed line passes "
                "another, the base solves more problems than that arm, given as many samples.",
                partial(drawings.curves, numbers, compared, colours(run.recipe.arms(run.scale))),
            ),
            Plan(
                "solved-sets",
                "Which problems are solved",
                "In all samples of each: what the base alone solves is lost in training, what it alone "
                "solves is gained. Mean over seeds.",
                partial(drawings.solved_sets, sets),
                drawings.in_words(sets),
            ),
        ],
    )


@dataclass(frozen=True)
class Page:
    crossovers: dict[str, Any] | None  # None: no section
    solved: dict[str, Any] | None
    base: str  # the checkpoint that the others are set against


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    crossed, sets = (_read(folder / f"{name}.csv") for name in TABLES)
    return Page(
        crossovers=None if crossed is None else cells(rows.crossovers_shown(crossed)),
        solved=None if sets is None else cells(rows.solved_shown(sets)),
        base=run.document.coverage or "",
    )


def _read(path: Path) -> pd.DataFrame | None:
    """A table of this section, if analyse wrote it."""
    return pd.read_csv(path) if path.exists() else None
