"""The health checks of every job, and the worst value of each check."""

import math

import pandas as pd

from analysis.numbers.means import DASH
from analysis.numbers.run import Run, read_json

CHECKS = ["arm", "seed", "stage", "check", "ok", "value", "limit", "severity", "message"]


def checks(run: Run) -> pd.DataFrame:
    """Return a row for each check of each job, with the columns CHECKS."""
    rows = []
    for node in run.all_nodes():
        where = {"arm": node.arm, "seed": node.seed, "stage": run.label(node)}
        for check in (read_json(run.sentinel(node)) or {}).get("health", []):
            rows.append(where | check)
    return pd.DataFrame(rows, columns=CHECKS)


def worst(checks: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each stage, arm and check, with its worst value over seeds; failed checks come first.

    If the check failed in any seed, the worst value is the one farthest beyond the limit; otherwise it is the
    one nearest to the limit. `checks` is the table of checks().
    """
    rows: list[dict[str, str]] = []
    for _, group in checks.groupby(["stage", "arm", "check"], sort=False):
        failed = group[~group.ok.astype(bool)]
        seen = failed if len(failed) else group
        distance = (pd.to_numeric(seen.value) - pd.to_numeric(seen.limit)).abs().fillna(math.inf)
        worst_row = seen.iloc[int(distance.argmax() if len(failed) else distance.argmin())]
        state = "ok" if not len(failed) else str(worst_row.severity)
        rows.append(
            {
                "state": state,
                "check": worst_row.check,
                "stage": worst_row.stage,
                "arm": worst_row.arm,
                "passed": f"{len(group) - len(failed)}/{len(group)}",
                "value": _plain(worst_row.value),
                "limit": _plain(worst_row.limit),
                "message": worst_row.message or "",
            }
        )
    columns = ["state", "check", "stage", "arm", "passed", "value", "limit", "message"]
    ordered = sorted(rows, key=lambda row: row["state"] == "ok")
    return pd.DataFrame(ordered, columns=columns)


def _plain(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DASH if value is None else str(value)
    return DASH if math.isnan(value) else f"{value:.4g}"
