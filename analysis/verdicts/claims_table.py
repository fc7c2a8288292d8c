"""The table of verdicts, with a row for each claim, and the table of the looks that judged each claim."""

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from analysis.numbers.means import DASH, MINUS, Mean, number, shown
from analysis.verdicts import claims
from encore.recipe.looks import LOOKS


def holds_when(verdict: claims.Verdict) -> str:
    """Return the claim as an inequality for the difference d, such as `d > 0.05`."""
    margin = verdict.margin
    if verdict.direction == "equal":
        return f"|d| < {margin:g}"
    return f"d > {margin:g}" if verdict.direction == "higher" else f"d < {-margin or 0:g}".replace("-", MINUS)


def verdicts_shown(verdicts: Iterable[claims.Verdict]) -> pd.DataFrame:
    """Return the table of verdicts for readers, with a row for each claim."""
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
                "difference d": shown(v.difference, v.metric) if v.n else DASH,
                "of": _centre(v),
                "level": level(v.level),
                "plain 95% interval": shown(v.plain, v.metric) if v.n > 1 else DASH,
                "detectable": number(v.detectable, v.metric),
                "seeds": f"{v.agree}/{v.n} agree" if v.n else DASH,
                "verdict": v.word + (f" ({v.stands_at})" if v.stands_at else ""),
                "needs": f"{v.needed} seeds" if v.needed else DASH,
                "note": v.note,
            }
        )
    return pd.DataFrame(rows)


def _centre(verdict: claims.Verdict) -> str:
    """Return `mean` or `median`, whichever decides a claim; a dash if the claim was not tested."""
    return ("median" if verdict.by_median else "mean") if verdict.n else DASH


def level(chance: float) -> str:
    """Return the probability that an interval contains the truth as `98.3%`; a dash without an interval."""
    return DASH if math.isnan(chance) else f"{100 * chance:.1f}%"


MEANINGS = {  # verdict (claims.VERDICTS) -> its meaning, for readers
    "shown": "it holds here: the whole interval says so",
    "shown, smaller": "it goes this way, but less far than was claimed, or than would matter",
    "equivalent": "a difference was claimed, but any difference here is too small to matter",
    "reversed": "the effect goes the other way; or, if the claim is that two are equal, they differ too much",
    "open": "these seeds cannot say; more might",
    "not tested": "there are no numbers for it, or what it is about did not occur here",
}
LOOK_NUMBERS = ("n", "estimate", "low", "high", "level")


def looks(history: Iterable[Iterable[claims.Verdict]]) -> pd.DataFrame:
    """Return a row for each claim and each look that judged it; column `look` is a number of seeds.

    `history` has the verdicts on all claims at each look, in order.
    """
    rows = [
        [v.id, v.family, v.look or v.asked, *(getattr(v, name) for name in LOOK_NUMBERS), v.word]
        for claim in zip(*history, strict=True)
        for i, v in enumerate(claim)
        if v.n and (i == 0 or v.look != claim[i - 1].look)
    ]
    return pd.DataFrame(rows, columns=["claim", "family", "look", *LOOK_NUMBERS, "word"])


def looks_shown(frame: pd.DataFrame, metrics: Mapping[str, str]) -> pd.DataFrame:
    """Return the table of looks for readers; `metrics` maps a claim to its metric."""
    rows = []
    for row in frame.to_dict("records"):
        mean = Mean(row["estimate"], row["low"], row["high"], row["n"], "seeds")
        rows.append(
            {
                "claim": row["claim"],
                "look": _look(row["look"]),
                "difference d": shown(mean, metrics[row["claim"]]),
                "level": level(row["level"]),
                "verdict": row["word"],
            }
        )
    return pd.DataFrame(rows)


def _look(seeds: int) -> str:
    """Return a look as text, such as `2: 16 seeds`."""
    if seeds in LOOKS:
        return f"{LOOKS.index(seeds) + 1}: {seeds} seeds"
    return f"{seeds} seeds, before the first"
