"""The tables of verdicts, a row a claim, and of the looks that were taken."""

from collections.abc import Iterable, Mapping

import pandas as pd

from analysis.numbers.means import DASH, MINUS, Mean, number, p_value, shown
from analysis.verdicts import claims
from encore.recipe.looks import LOOKS


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
                "family": v.family,
                "claim in words": v.says,
                "source": v.source,
                "compared": f"{v.metric}: {v.of}" + (f" {MINUS} {v.against}" if v.against else ""),
                "asked": holds_when(v),
                "matters from": number(v.smallest_effect, v.metric) if v.smallest_effect else DASH,
                "difference d": shown(v.estimate, v.metric) if v.n else DASH,
                "corrected p": _p(v.p_decisive),
                "detectable": number(v.detectable, v.metric),
                "seeds": f"{v.agree}/{v.n} agree" if v.n else DASH,
                "verdict": v.verdict + (f" ({v.stands_at})" if v.stands_at else ""),
                "note": v.note,
            }
        )
    return pd.DataFrame(rows)


LOOK_NUMBERS = ("n", "mean", "low", "high", *claims.P_VALUES)


def looks(history: Iterable[Iterable[claims.Verdict]]) -> pd.DataFrame:
    """One row per claim and look that it took: what was known then. `look` is the number of seeds."""
    rows = [
        [
            v.id,
            v.family,
            v.asked,
            v.n,
            v.mean,
            v.low,
            v.high,
            *(getattr(v, p) for p in claims.P_VALUES),
            v.verdict,
        ]
        for claim in zip(*history, strict=True)
        for i, v in enumerate(claim)
        if v.n and (i == 0 or v.seeds != claim[i - 1].seeds)
    ]
    return pd.DataFrame(rows, columns=["claim", "family", "look", *LOOK_NUMBERS, "verdict"])


def looks_shown(frame: pd.DataFrame, metrics: Mapping[str, str]) -> pd.DataFrame:
    """The looks for a reader; metrics: claim -> its metric."""
    rows = []
    for row in frame.to_dict("records"):
        mean = Mean(row["mean"], row["low"], row["high"], row["n"], "seeds")
        rows.append(
            {
                "claim": row["claim"],
                "look": _look(row["look"]),
                "difference d": shown(mean, metrics[row["claim"]]),
                "p of the claim": _p(row["p_claim"]),
                "of its opposite": _p(row["p_opposite"]),
                "of no difference": _p(row["p_no_difference"]),
                "verdict": row["verdict"],
            }
        )
    return pd.DataFrame(rows)


def _look(seeds: int) -> str:
    if seeds in LOOKS:
        return f"{LOOKS.index(seeds) + 1}: {seeds} seeds"
    return f"{seeds} seeds, {'before the first' if seeds < LOOKS[0] else 'exploratory'}"


def _p(p: float) -> str:
    return p_value(p).removeprefix("p = ").removeprefix("p ") or DASH
