"""Doubts about a comparison: the same runs twice, a metric near its limit, truncated replies.

Such a comparison is judged like any other; the doubt is shown beside its verdict.
"""

from collections.abc import Sequence

import pandas as pd

from analysis.numbers.means import number
from analysis.numbers.table import measured
from encore.recipe.claims import Comparison
from encore.recipe.metric_names import task_of

RATES = ("accuracy", "format_rate", "win_rate")  # metrics between 0 and 1, like pass@k and maj@k
NEAR = 0.02  # distance from 0 or 1 below which there is no room for a difference
CUT = 0.05  # share of truncated replies above which the cap affects accuracy and length


def doubts(comparison: Comparison, table: pd.DataFrame, differences: Sequence[float]) -> list[str]:
    """Return the reasons why a comparison may say little about its subject; `table` has the final numbers."""
    compared, reasons = comparison.sides, []
    if len(compared) == 2 and len(differences) > 1 and not any(differences):
        reasons.append("both sides are equal in every seed: what differs between them has no effect here")
    means = [measured(table, at, metric).value.mean() for at, metric in compared]
    if _is_rate(comparison.metric) and all(mean < NEAR for mean in means):
        reasons.append(f"at the floor: {' and '.join(map(number, means))}")
    if _is_rate(comparison.metric) and all(mean > 1 - NEAR for mean in means):
        reasons.append(f"at the ceiling: {' and '.join(map(number, means))}")
    return reasons + [cut for at, metric in compared if (cut := _cut(table, at, metric))]


def _is_rate(metric: str) -> bool:
    name = metric.rpartition("/")[2]
    return name in RATES or name.startswith(("pass@", "maj@"))


def _cut(table: pd.DataFrame, at: str, metric: str) -> str:
    """Return a doubt if more than CUT of the replies hit the cap and the metric depends on them; else ""."""
    task, name = task_of(metric), metric.rpartition("/")[2]
    if not task or not (_is_rate(metric) or name.startswith("length")):
        return ""
    share = measured(table, at, f"{task}/truncation_rate").value.mean()
    return f"{share:.0%} of the replies of {at} were cut at the cap" if share > CUT else ""
