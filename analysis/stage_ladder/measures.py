"""The table of all measures of every step of the ladder, with the paper's numbers below ours."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.numbers.means import DASH, average, number, with_interval
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.numbers.tasks import PREFERENCES
from analysis.stage_ladder.steps import Step, evaluated
from encore.recipe.claims import Published
from encore.recipe.metric_names import OF_WORLD

# measures, in the order of the table
HEADLINE = ("accuracy", *PREFERENCES, *OF_WORLD, "format_rate", "length")
COLUMNS = ["task", "step", "at", "measure", "value", "low", "high", "models", "published", "what", "source"]


def measures(run: Run, numbers: pd.DataFrame, ladder: Sequence[Step]) -> pd.DataFrame:
    """Return a row for each task, step and measure: mean over seeds with interval, and the paper's number.

    `numbers` are final numbers. The measures are all of HEADLINE that a task has, and all that have a number
    of the paper. Column `published` is text, with all of the paper's numbers in the paper's unit.
    """
    published = _published(run)
    rows = []
    for task in evaluated(run, ladder):
        for step in ladder:
            for measure in _measured(numbers, task, ladder, published):
                metric = f"{task}/{measure}"
                mean = average(measured(numbers, step.at, metric))
                theirs = published.get((step.at, metric), [])
                if not mean.n and not theirs:
                    continue
                rows.append(
                    {"task": task, "step": step.name, "at": step.at, "measure": measure, "models": mean.n}
                    | mean.columns()
                    | {"published": "; ".join(_with_unit(entry) for entry in theirs)}
                    | {"what": "; ".join(dict.fromkeys(entry.what for entry in theirs))}
                    | {"source": "; ".join(dict.fromkeys(entry.source for entry in theirs))}
                )
    return pd.DataFrame(rows, columns=COLUMNS)


def _published(run: Run) -> dict[tuple[str, str], list[Published]]:
    """Return (arm/checkpoint, metric) -> the paper's numbers at this scale."""
    by_place: dict[tuple[str, str], list[Published]] = {}
    for entry in run.document.published:
        if entry.at and entry.metric and entry.is_at(run.scale):
            by_place.setdefault((entry.at, entry.metric), []).append(entry)
    return by_place


def _measured(
    numbers: pd.DataFrame, task: str, ladder: Sequence[Step], published: Mapping[tuple[str, str], Any]
) -> list[str]:
    """Return the measures of a task for which any step has a number of ours or of the paper."""
    places = {step.at for step in ladder}
    rows = numbers[numbers.metric.str.startswith(f"{task}/") & numbers.value.notna()]
    rows = rows[(rows.arm + "/" + rows.node).isin(places)]
    metrics = {metric.removeprefix(f"{task}/") for metric in rows.metric}
    if not rows.value[rows.metric.str.endswith("/format_rate")].any():  # no arm was asked for a format
        metrics.discard("format_rate")
    theirs = [metric.removeprefix(f"{task}/") for at, metric in published
              if at in places and metric.startswith(f"{task}/")]  # fmt: skip
    return list(dict.fromkeys([*(name for name in HEADLINE if name in {*metrics, *theirs}), *theirs]))


def _with_unit(entry: Published) -> str:
    return f"{entry.value:g} {entry.unit}".strip()


def measures_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of measures() for readers: a row for each task and step, a column for each measure.

    The paper's numbers have a row of their own, below ours.
    """
    columns = list(dict.fromkeys(frame.measure))
    rows = []
    for (task, step), cells in frame.groupby(["task", "step"], sort=False):
        by_measure = {row["measure"]: row for row in cells.to_dict("records")}
        for kind, cell in (("", _ours), (", paper", _theirs)):
            texts = {name: cell(row) for name, row in by_measure.items()}
            if not kind or set(texts.values()) != {DASH}:
                filled = {_column(name): texts.get(name, DASH) for name in columns}
                rows.append({"task": task, "step": f"{step}{kind}"} | filled)
    return pd.DataFrame(rows)


def _column(measure: str) -> str:
    return measure.replace("_", " ")


def _ours(row: Mapping[Hashable, Any]) -> str:
    if not row["models"]:
        return DASH
    if row["measure"] == "format_rate":
        return number(row["value"], row["measure"])
    return with_interval(row["value"], row["low"], row["high"], row["measure"])


def _theirs(row: Mapping[Hashable, Any]) -> str:
    return row["published"] or DASH


def by_task(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, list[str]]]:
    """Yield each task with its table for readers, and texts on what the paper's numbers in it are about."""
    for task, rows in frame.groupby("task", sort=False):
        theirs = [f"{row['what']} ({row['source']})" for row in rows.to_dict("records") if row["what"]]
        yield str(task), measures_shown(rows).drop(columns="task").rename(columns={"step": ""}), theirs
