"""The table of verdicts, a row a claim."""

from collections.abc import Iterable

import pandas as pd

from analysis.numbers.means import DASH, MINUS, number, p_value, shown
from analysis.verdicts import claims


def holds_when(verdict: claims.Verdict) -> str:
    """The claim as an inequality of the difference d."""
    margin = verdict.margin
    if verdict.direction == "equal":
        return f"|d| < {margin:g}"
    return f"d > {margin:g}" if verdict.direction == "higher" else f"d < {-margin or 0:g}".replace("-", MINUS)


def verdicts_shown(verdicts: Iterable[claims.Verdict]) -> pd.DataFrame:
    """One row per claim for a reader."""
    rows = []
    for v in verdicts:
        rows.append(
            {
                "claim": v.id,
                "published claim": v.says,
                "source": v.source,
                "compared": f"{v.metric}: {v.of}" + (f" {MINUS} {v.against}" if v.against else ""),
                "holds when": holds_when(v),
                "difference d": shown(v.estimate, v.metric) if v.n else DASH,
                "p by Holm": p_value(v.p_decisive).removeprefix("p = ").removeprefix("p ") or DASH,
                "detectable": number(v.detectable, v.metric),
                "seeds": f"{v.agree}/{v.n} agree" if v.n else DASH,
                "verdict": v.verdict + (f" ({v.seeds_so_far})" if v.seeds_so_far else ""),
                "note": v.note,
            }
        )
    return pd.DataFrame(rows)
