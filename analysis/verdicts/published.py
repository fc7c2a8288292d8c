"""The paper's numbers beside ours, each in the unit of the paper."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.means import DASH, Mean, average, percent, shown
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.preferences import contenders
from encore.recipe.claims import Published

# metric of an entry with `of` and `against` -> a table of preferences.TABLES, and columns: value, low, high
PAIRED = {
    "win_rate": ("win_rates", "win_rate", "low", "high"),
    "length_controlled": ("length_controlled", *(f"gold/controlled{end}" for end in ("", "_low", "_high"))),
}
NOTHING = Mean(math.nan, math.nan, math.nan, 0, "")
PLAIN = {"win_rate": "win rate", "length_controlled": "length-controlled win rate"}


def build(run: Run, numbers: pd.DataFrame, paired: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the paper's numbers and ours: side by side at scale `paper`, otherwise in separate rows.

    Only at that scale are model, data and settings the paper's.
    """
    table = beside(run, numbers, paired)
    return table if run.scale == "paper" else apart(table)


def beside(run: Run, numbers: pd.DataFrame, paired: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each published number, with our number in the same unit and its name.

    An entry with `scales` is left out at other scales. `paired` has the tables of win rates by name
    (preferences.TABLES).
    """
    rows, names = [], _names(run, numbers)
    for entry in run.document.published:
        if not entry.is_at(run.scale):
            continue
        if entry.of is not None:
            mean, what = _between(run, names, entry, paired)
        else:
            mean, what = _ours(run, numbers, entry)
        value = percent(mean) if entry.unit == "%" else shown(mean, entry.metric or "")
        rows.append(
            {
                "what": entry.what,
                "published": f"{entry.value:g} {entry.unit}".strip(),
                "ours": value if mean.n else DASH,
                "source": entry.source,
                "our metric": what,
            }
        )
    return pd.DataFrame(rows)


def apart(beside: pd.DataFrame) -> pd.DataFrame:
    """Return the table of beside() with the paper's numbers and ours in separate rows.

    Its columns are whose, what, value and source. Numbers of different models on different problems should
    not stand side by side.
    """
    columns = ["whose", "what", "value", "source"]
    if not len(beside):
        return pd.DataFrame(columns=columns)
    theirs = beside.assign(whose="paper", value=beside.published)
    measured = beside[beside.ours != DASH].drop_duplicates("our metric")
    ours = measured.assign(whose="here", what=measured["our metric"], value=measured.ours, source="this run")
    return pd.concat([theirs, ours], ignore_index=True)[columns]


def _ours(run: Run, numbers: pd.DataFrame, entry: Published) -> tuple[Mean, str]:
    """Return our number for an entry and its name; without a number, a mean with n = 0 and the reason."""
    metric, at = entry.metric, entry.at
    if not (metric and at):
        return NOTHING, "not measured here"
    mean = average(measured(numbers, at, metric))
    if mean.n:
        return mean, f"{metric} at {at}"
    arm, _, checkpoint = at.partition("/")
    task = metric.partition("/")[0]
    if arm not in run.arms:
        return mean, f"arm {arm} was not run"
    if checkpoint not in run.checkpoints(arm) or task not in tasks.tasks(run, arm, checkpoint):
        return mean, f"{task} is not evaluated at {run.scale} scale"
    return mean, f"no {metric} at {at}"


def _between(
    run: Run, names: Mapping[Any, str], entry: Published, paired: Mapping[str, pd.DataFrame]
) -> tuple[Mean, str]:
    """Return our win rate of the entry's policy `of` against its policy `against`, and the number's name."""
    metric, policies = str(entry.metric), (str(entry.of), str(entry.against))
    name, *columns = PAIRED[metric]
    what = f"{PLAIN[metric]} of {policies[0]} against {policies[1]}"
    frame = paired.get(name)
    sides = [_name(run, names, place) for place in policies]
    if frame is None or None in sides or columns[0] not in frame:
        return NOTHING, f"no {what}"
    row = frame[(frame.of == sides[0]) & (frame.against == sides[1])]
    if not len(row):
        return NOTHING, f"no {what}"
    value, low, high = (float(row[column].iloc[0]) for column in columns)
    seeds = min(len(run.seeds_of(place.partition("/")[0])) for place in policies)
    return Mean(value, low, high, seeds, "seeds"), what


def _names(run: Run, numbers: pd.DataFrame) -> dict[Any, str]:
    """Return the model of each policy -> the policy's name in the tables of win rates."""
    among = contenders.contenders(run, numbers, contenders.judged_task(run, numbers))
    return {
        contenders.model(run, contender.arm, contender.checkpoint, run.seeds[0]): contender.name
        for contender in among
    }


def _name(run: Run, names: Mapping[Any, str], place: str) -> str | None:
    """Return the name of the policy at the place `arm/checkpoint`; None if the policy has no name."""
    arm, _, checkpoint = place.partition("/")
    if arm not in run.arms or checkpoint not in run.checkpoints(arm):
        return None
    return names.get(contenders.model(run, arm, checkpoint, run.seeds[0]))
