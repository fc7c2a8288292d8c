"""What may mislead in a comparison: the same runs twice, a metric without room left, replies that were cut.

Such a comparison is judged like any other; the reason stands beside its verdict.
"""

from collections.abc import Sequence

import pandas as pd

from analysis.numbers.means import number
from analysis.numbers.table import measured
from encore.recipe.claims import Comparison
from encore.recipe.metric_names import task_of

RATES = ("accuracy", "format_rate", "win_rate")  # and pass@k, maj@k: between 0 and 1
NEAR = 0.02  # of 0 or 1: there is no room for a difference
CUT = 0.05  # share of replies that end at the cap, from which on it shapes accuracy and length


def doubts(comparison: Comparison, table: pd.DataFrame, differences: Sequence[float]) -> list[str]:
    """Why the differences of a comparison, from the final numbers, may say little of what it is about."""
    compared, found = comparison.sides, []
    if len(compared) == 2 and len(differences) > 1 and not any(differences):
        found.append("both sides are equal in every seed: what differs between them has no effect here")
    means = [measured(table, at, metric).value.mean() for at, metric in compared]
    if _is_rate(comparison.metric) and all(mean < NEAR for mean in means):
        found.append(f"at the floor: {' and '.join(map(number, means))}")
    if _is_rate(comparison.metric) and all(mean > 1 - NEAR for mean in means):
        found.append(f"at the ceiling: {' and '.join(map(number, means))}")
    return found + [cut for at, metric in compared if (cut := _cut(table, at, metric))]


def _is_rate(metric: str) -> bool:
    name = metric.rpartition("/")[2]
    return name in RATES or name.startswith(("pass@", "maj@"))


def _cut(table: pd.DataFrame, at: str, metric: str) -> str:
    """Says it where a cap binds on what the metric is of."""
    task, name = task_of(metric), metric.rpartition("/")[2]
    if not task or not (_is_rate(metric) or name.startswith("length")):
        return ""
    share = measured(table, at, f"{task}/truncation_rate").value.mean()
    return f"{share:.0%} of the replies of {at} were cut at the cap" if share > CUT else ""
