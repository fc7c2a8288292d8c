"""Section "sensitivity" of the page: how much the gain of training depends on the evaluation protocol.

Only recipes whose evaluations have the key `sensitivity` have the section.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.numbers.means import DASH, number
from analysis.numbers.run import Run
from analysis.page.figures import Plan
from analysis.page.interval_rows import Row, plan, signed
from analysis.page.tables import Cells, Table
from analysis.page.view import View
from analysis.sensitivity import estimates
from analysis.sensitivity.build import Sensitivity


@dataclass(frozen=True)
class Page:
    """The values that the template of sensitivity shows."""

    task: str
    place: str  # arm and seed of the models that are measured
    protocols: Cells
    choices: Cells
    lowest: str
    highest: str


def view(run: Run, result: Sensitivity | None) -> View:
    """Return the section of sensitivity; an empty section if `result` is None."""
    if result is None:
        return View([], [], None)
    protocols = Table(
        "sensitivity", "Gain by protocol of evaluation", result.protocols, _protocols_shown(result.protocols)
    )
    choices = Table(
        "sensitivity_choices",
        "What each choice makes or takes",
        result.choices,
        _choices_shown(result.choices),
    )
    lowest, highest = (
        f"{_with_interval(dict(row), 'gain')} ({estimates.label(row)})"
        for row in estimates.spread(result.protocols)
    )
    page = Page(
        task=result.task,
        place=f"{run.arms[0]}, seed {run.recipe.first_seed}",
        protocols=protocols.cells,
        choices=choices.cells,
        lowest=lowest,
        highest=highest,
    )
    return View([protocols, choices], [_figure(result.protocols)], page)


def _figure(protocols: pd.DataFrame) -> Plan:
    rows = [
        Row(
            estimates.label(row),
            (),
            row["gain"],
            row["gain_low"],
            row["gain_high"],
            _with_interval(row, "gain"),
        )
        for row in protocols.sort_values("gain", ascending=False, kind="stable").to_dict("records")
    ]
    return plan(
        "gain-by-protocol",
        "The gain of training by every protocol",
        "Accuracy after training less that before, both by the same template, wording, temperature and "
        "backend; the largest first, with intervals over problems.",
        rows,
        "gain in accuracy",
        zero=True,
    )


def _protocols_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of estimates.by_protocol() as text for readers."""
    return pd.DataFrame(
        {"protocol": estimates.label(row)} | _numbers(row, "more than the first")
        for row in frame.to_dict("records")
    )


def _choices_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of estimates.by_choice() as text for readers."""
    return pd.DataFrame(
        {"choice": row["choice"], "level": row["level"]} | _numbers(row, "makes or takes")
        for row in frame.to_dict("records")
    )


def _numbers(row: dict[Any, Any], more: str) -> dict[str, str]:
    accuracies = {"before": number(row["before"]), "after": number(row["after"])}
    return accuracies | {"gain": _with_interval(row, "gain"), more: _with_interval(row, "more")}


def _with_interval(row: dict[Any, Any], name: str) -> str:
    """Return a number with its interval, as `+0.031 [+0.020, +0.042]`; a dash if it is missing."""
    if pd.isna(row[name]):
        return DASH
    return f"{signed(row[name])} [{signed(row[f'{name}_low'])}, {signed(row[f'{name}_high'])}]"
