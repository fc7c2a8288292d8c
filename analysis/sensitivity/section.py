"""Protocol sensitivity: how much of the gain is the model's, and how much the way in which it is measured.

For a recipe whose evaluations ask for `sensitivity`; any other has no such section.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.numbers.means import DASH, number
from analysis.numbers.run import Run
from analysis.page.figures import Plan
from analysis.page.interval_rows import Row, plan, signed
from analysis.page.section import Contents, Made
from analysis.page.tables import Table, cells
from analysis.sensitivity import estimates, rates

NAME = "sensitivity"
TABLES = ("sensitivity", "sensitivity_choices")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    found = rates.read(run)
    if found is None:
        return Contents([])
    protocols, choices = estimates.by_protocol(found), estimates.by_choice(found)
    return Contents(
        [
            Table("sensitivity", "Gain by protocol of evaluation", protocols, _protocols_shown(protocols)),
            Table("sensitivity_choices", "What each choice makes or takes", choices, _choices_shown(choices)),
        ],
        [_figure(protocols)],
    )


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
    """The table of protocols for a reader."""
    return pd.DataFrame(
        {"protocol": estimates.label(row)} | _numbers(row, "more than the first")
        for row in frame.to_dict("records")
    )


def _choices_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """The table of choices for a reader."""
    return pd.DataFrame(
        {"choice": row["choice"], "level": row["level"]} | _numbers(row, "makes or takes")
        for row in frame.to_dict("records")
    )


def _numbers(row: dict[Any, Any], more: str) -> dict[str, str]:
    accuracies = {"before": number(row["before"]), "after": number(row["after"])}
    return accuracies | {"gain": _with_interval(row, "gain"), more: _with_interval(row, "more")}


def _with_interval(row: dict[Any, Any], name: str) -> str:
    """`+0.031 [+0.020, +0.042]`; a dash for none."""
    if pd.isna(row[name]):
        return DASH
    return f"{signed(row[name])} [{signed(row[f'{name}_low'])}, {signed(row[f'{name}_high'])}]"


@dataclass(frozen=True)
class Page:
    task: str  # empty: no section
    place: str  # arm and seed of the models
    protocols: dict[str, Any]
    choices: dict[str, Any]
    lowest: str
    highest: str


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    evals, written = rates.of(run), folder / "sensitivity.csv"
    if evals is None or evals.sensitivity is None or not written.exists():
        return Page("", "", cells(pd.DataFrame()), cells(pd.DataFrame()), "", "")
    protocols = pd.read_csv(written)
    choices = pd.read_csv(folder / "sensitivity_choices.csv", dtype={"level": str})
    lowest, highest = (
        f"{_with_interval(dict(row), 'gain')} ({estimates.label(row)})" for row in estimates.spread(protocols)
    )
    return Page(
        task=evals.sensitivity.task,
        place=f"{run.arms[0]}, seed {run.recipe.first_seed}",
        protocols=cells(_protocols_shown(protocols)),
        choices=cells(_choices_shown(choices)),
        lowest=lowest,
        highest=highest,
    )
