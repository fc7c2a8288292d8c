"""The checks of every job."""

import math

import pandas as pd

from analysis.numbers.means import DASH


def health(checks: pd.DataFrame) -> pd.DataFrame:
    """One row per stage, arm and check over seeds, with the worst value; what failed comes first.

    The worst is the one farthest past its limit where any failed, else the one nearest to it.
    """
    rows: list[dict[str, str]] = []
    for _, group in checks.groupby(["stage", "arm", "check"], sort=False):
        failed = group[~group.ok.astype(bool)]
        seen = failed if len(failed) else group
        distance = (pd.to_numeric(seen.value) - pd.to_numeric(seen.limit)).abs().fillna(math.inf)
        worst = seen.iloc[int(distance.argmax() if len(failed) else distance.argmin())]
        state = "ok" if not len(failed) else str(worst.severity)
        rows.append(
            {
                "state": state,
                "check": worst.check,
                "stage": worst.stage,
                "arm": worst.arm,
                "passed": f"{len(group) - len(failed)}/{len(group)}",
                "value": _plain(worst.value),
                "limit": _plain(worst.limit),
                "message": worst.message or "",
            }
        )
    columns = ["state", "check", "stage", "arm", "passed", "value", "limit", "message"]
    ordered = sorted(rows, key=lambda row: row["state"] == "ok")
    return pd.DataFrame(ordered, columns=columns)


def _plain(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DASH if value is None else str(value)
    return DASH if math.isnan(value) else f"{value:.4g}"
