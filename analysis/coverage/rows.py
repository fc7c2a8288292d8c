"""The two tables of the section: where curves of pass@k cross, and which problems are solved."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.coverage.compared import Place, curve
from analysis.numbers.means import DASH, Mean, average, number, shown
from analysis.numbers.table import measured
from encore.recipe.metric_names import FAMILIAR

# shares of problems that add up to 1, and who solves them
SOLVED = {"both": "both", "lost": "base alone", "gained": "it alone", "neither": "neither"}
PERPLEXITY = "perplexity_correct"


def crossovers(numbers: pd.DataFrame, by_task: Mapping[str, Sequence[Place]]) -> pd.DataFrame:
    """A row a task and checkpoint: pass@k at both ends of k, the crossover, where it is ahead."""
    rows = []
    for task, places in by_task.items():
        for place in places:
            ends = [_ends(numbers, at, task) for at in (place.base_at, place.at)]
            found = {name: _mean(numbers, place.at, task, name) for name in ("crossed", "ahead", "behind")}
            seeds = measured(numbers, place.at, f"{task}/crossover").value
            rows.append(
                {"task": task, "checkpoint": place.at, "k": ends[1][0]}
                | {
                    f"base {side}": mean.value
                    for side, mean in zip(("first", "last"), ends[0][1:], strict=True)
                }
                | {side: mean.value for side, mean in zip(("first", "last"), ends[1][1:], strict=True)}
                | {
                    "seeds that cross": int(seeds.notna().sum()),
                    "seeds": len(seeds),
                    "crossover": seeds.median(),
                }
                | {"from": seeds.min(), "to": seeds.max()}
                | {name: mean.value for name, mean in found.items()}
            )
    return pd.DataFrame(rows)


def crossovers_shown(frame: pd.DataFrame) -> pd.DataFrame:
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
    """`38 [21, 90]`: the median seed's crossover and the range of those that cross."""
    if not row["seeds that cross"]:
        return DASH
    middle, low, high = (f"{row[name]:.3g}" for name in ("crossover", "from", "to"))
    return middle if low == high else f"{middle} [{low}, {high}]"


def solved(numbers: pd.DataFrame, by_task: Mapping[str, Sequence[Place]]) -> pd.DataFrame:
    """A row a task, checkpoint and measure, with its mean over seeds and interval; nan where it has none."""
    rows = []
    for task, places in by_task.items():
        for place in places:
            of_base = {"base perplexity": _mean(numbers, place.base_at, task, PERPLEXITY)}
            names = (*SOLVED, "gained_by_chance", FAMILIAR, PERPLEXITY)
            means = {name: _mean(numbers, place.at, task, name) for name in names} | of_base
            rows += [
                {"task": task, "checkpoint": place.at, "measure": name}
                | {"value": mean.value, "low": mean.low, "high": mean.high}
                for name, mean in means.items()
            ]
    return pd.DataFrame(rows)


def solved_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a task and checkpoint; without the columns that none has."""
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


def _ends(numbers: pd.DataFrame, at: str, task: str) -> tuple[int, Mean, Mean]:
    """The largest k of a checkpoint's curve, and its first and last mean."""
    means = curve(numbers, at, task)
    return max(means), means[min(means)], means[max(means)]


def _mean(numbers: pd.DataFrame, at: str, task: str, name: str) -> Mean:
    return average(measured(numbers, at, f"{task}/{name}"))
