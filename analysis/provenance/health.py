"""The health checks of every job, and the worst value of each check."""

import math
from collections.abc import Iterable

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
    return _worst(checks.assign(passed=checks.ok.astype(int), of=1))


def joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the table that worst() gives for all seeds of several of its tables."""
    rows = pd.concat(tables, ignore_index=True)
    counts = rows.passed.str.split("/", expand=True).astype(int)
    numbers = {name: rows[name].map(_number) for name in ("value", "limit")}
    return _worst(
        rows.assign(ok=rows.state == "ok", severity=rows.state, passed=counts[0], of=counts[1], **numbers)
    )


def _number(text: str) -> float | str:
    """Return the number that _plain() wrote, NaN for its dash, or the text itself."""
    try:
        return math.nan if text == DASH else float(text)
    except ValueError:
        return text


def _worst(checks: pd.DataFrame) -> pd.DataFrame:
    """Return the table of worst(); the columns `passed` and `of` of `checks` count the seeds of a row."""
    rows: list[dict[str, str]] = []
    for _, group in checks.groupby(["stage", "arm", "check"], sort=False):
        failed = group[~group.ok.astype(bool)]
        seen = failed if len(failed) else group
        value, limit = (pd.to_numeric(seen[name], errors="coerce") for name in ("value", "limit"))
        distance = (value - limit).abs().fillna(math.inf)
        worst_row = seen.iloc[int(distance.argmax() if len(failed) else distance.argmin())]
        state = "ok" if not len(failed) else str(worst_row.severity)
        rows.append(
            {
                "state": state,
                "check": worst_row.check,
                "stage": worst_row.stage,
                "arm": worst_row.arm,
                "passed": f"{group.passed.sum()}/{group.of.sum()}",
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
