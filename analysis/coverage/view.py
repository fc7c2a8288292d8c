"""Section "coverage" of the page: problems that training made solvable, and the reverse.

Only recipes with the key `coverage` have the section.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from analysis.coverage import drawings
from analysis.coverage.build import PERPLEXITY, SOLVED, Coverage
from analysis.numbers.means import DASH, Mean, number, shown
from analysis.numbers.run import Run
from analysis.page.figures import Plan
from analysis.page.palette import colours
from analysis.page.tables import Cells, Table
from analysis.page.view import View
from encore.recipe.metric_names import FAMILIAR


@dataclass(frozen=True)
class Page:
    """The values that the template of coverage shows."""

    crossovers: Cells
    solved: Cells
    base: str  # the checkpoint that the others are compared with


def view(run: Run, numbers: pd.DataFrame, result: Coverage | None) -> View:
    """Return the section of coverage; an empty section if `result` is None."""
    if result is None:
        return View([], [], None)
    crossed = Table(
        "crossovers",
        "Where pass@k of the base passes that of training",
        result.crossovers,
        crossovers_shown(result.crossovers),
    )
    sets = Table(
        "solved_sets",
        "Problems solved by both, by one, by neither",
        result.solved,
        solved_shown(result.solved),
    )
    figures = [
        Plan(
            "coverage",
            "pass@k of the base and of every arm",
            "Chance that one of k samples is right, with 95% bands. Where the dashed line passes "
            "another, the base solves more problems than that arm, given as many samples.",
            partial(drawings.curves, numbers, result.by_task, colours(run.recipe.arms(run.scale))),
        ),
        Plan(
            "solved-sets",
            "Which problems are solved",
            "In all samples of each: what the base alone solves is lost in training, what it alone "
            "solves is gained. Mean over seeds.",
            partial(drawings.solved_sets, result.solved),
            drawings.in_words(result.solved),
        ),
    ]
    return View([crossed, sets], figures, Page(crossed.cells, sets.cells, run.document.coverage or ""))


def crossovers_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of crossovers for readers."""
    rows = []
    for row in frame.to_dict("records"):
        k = f"{row['k']:,.0f}"
        rows.append(
            {
                "task": row["task"],
                "checkpoint": row["checkpoint"],
                "pass@1, base": number(row["base first"]),
                "pass@1": number(row["first"]),
                f"pass@{k}, base": number(row["base last"]),
                f"pass@{k}": number(row["last"]),
                "crosses at k": _range(row),
                "in seeds": f"{row['seeds that cross']:.0f}/{row['seeds']:.0f}",
                "in resamples": number(row["crossed"]),
                "ahead on": number(row["ahead"]),
                "behind on": number(row["behind"]),
            }
        )
    return pd.DataFrame(rows).fillna(DASH)


def _range(row: Mapping[Any, Any]) -> str:
    """Return a text such as `38 [21, 90]`: the median crossover and its range over seeds that cross."""
    if not row["seeds that cross"]:
        return DASH
    middle, low, high = (f"{row[name]:.3g}" for name in ("crossover", "from", "to"))
    return middle if low == high else f"{middle} [{low}, {high}]"


def solved_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of solved problems for readers, a row for each task and checkpoint.

    Columns without any number are left out.
    """
    names = {
        **SOLVED,
        "gained_by_chance": "by chance",
        FAMILIAR: "familiar",
        PERPLEXITY: "perplexity",
        "base perplexity": "of the base's",
    }
    rows = []
    for (task, at), group in frame.groupby(["task", "checkpoint"], sort=False):
        by_name = group.set_index("measure")
        values, lows, highs = by_name.value, by_name.low, by_name.high
        means = {name: Mean(values[name], lows[name], highs[name], 1, "") for name in names}
        rows.append(
            {"task": task, "checkpoint": at} | {title: shown(means[name]) for name, title in names.items()}
        )
    wide = pd.DataFrame(rows)
    return wide.loc[:, [not (wide[column] == DASH).all() for column in wide]]
