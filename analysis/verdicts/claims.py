"""A judged claim: what was compared, what came of it, and both as a table that can be read again.

A claim is to be written before the run; whether those of a record were, verdicts.written tells. It names a
difference d = `of` - `against` (or `of` alone) in a `metric` (of `against` maybe in another,
`against_metric`), a direction and a margin m >= 0.

    higher:  d > m          lower:  d < -m          equal:  |d| < m

How a verdict comes about is in verdicts.decision.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Protocol

import pandas as pd

from analysis.numbers.means import Mean
from encore.errors import UserError
from encore.recipe.looks import LOOKS

VERDICTS = (
    "reproduced",
    "supported so far",
    "inconclusive",
    "direction only",
    "weaker than claimed",
    "weaker so far",
    "no difference",
    "opposed so far",
    "contradicted",
    "not tested",
)
OPEN = ("supported so far", "inconclusive", "weaker so far", "opposed so far")  # more seeds may decide them
WEAKER = ("weaker than claimed", "weaker so far")
FAILED = ("contradicted", "opposed so far")


@dataclass(frozen=True)
class Verdict:
    """One judged claim. Numbers are nan where there are none; `differences` are in the order of `seeds`."""

    id: str
    says: str
    source: str
    paper: str  # whose claim it is: an arXiv number, an address or `ours`
    family: str  # primary | secondary
    metric: str
    of: str
    against: str
    direction: str
    margin: float
    smallest_effect: float  # |d| below which a difference does not matter
    n: int
    mean: float
    low: float
    high: float
    p: float  # of the claim's own test over all seeds, one-sided, uncorrected
    # of the statements of verdicts.statements, corrected for the looks taken and for the claims of the family
    p_claim: float
    p_opposite: float
    p_direction: float
    p_no_difference: float
    p_reverse: float
    verdict: str
    looks: int  # planned looks that were taken
    decided_at: int | None  # seeds of the look that decided; None: open or not tested
    asked: int  # seeds of the run, for some of which there may be no number
    agree: int  # seeds whose own difference satisfies the claim
    needed: int | None  # seeds of the planned look that is likely to decide; None: decided, none or unknown
    detectable: float  # smallest effect that the present look finds with 80% power
    seeds: tuple[int, ...]
    differences: tuple[float, ...]
    note: str

    @property
    def estimate(self) -> Mean:
        """The mean difference with its interval."""
        return Mean(self.mean, self.low, self.high, self.n, "seeds")

    @property
    def decided(self) -> bool:
        """Whether more seeds would change nothing."""
        return self.verdict not in OPEN

    @property
    def stands_at(self) -> str:
        """`look 1, 8 seeds` of a decided claim, `5 of 8 seeds` of one that waits for a look; else empty."""
        if self.decided_at:
            return f"look {LOOKS.index(self.decided_at) + 1}, {self.decided_at} seeds"
        to_come = [look for look in LOOKS if look > self.asked]
        return f"{self.asked} of {to_come[0]} seeds" if to_come and not self.decided else ""

    @property
    def p_decisive(self) -> float:
        """The corrected p-value behind the verdict: of the claim, of its opposite, or of no difference."""
        if self.verdict == "no difference":
            return self.p_no_difference
        if self.verdict in FAILED and not math.isnan(self.p_reverse):
            return self.p_reverse
        return self.p_opposite if self.verdict in (*FAILED, *WEAKER, "direction only") else self.p_claim


WHOLE = ("decided_at", "needed")  # columns of whole numbers that may be empty
P_VALUES = ("p", "p_claim", "p_opposite", "p_direction", "p_no_difference", "p_reverse")
NUMBERS = ("smallest_effect", "mean", "low", "high", "detectable", *P_VALUES, *WHOLE)  # may be empty


def satisfies(d: float, direction: str, margin: float) -> bool:
    """Whether one difference satisfies a claim."""
    if direction == "equal":
        return abs(d) < margin
    return d > margin if direction == "higher" else d < -margin


def frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """One row per claim; per-seed differences as `seed:difference` pairs, so that the CSV is complete."""
    rows = []
    for v in verdicts:
        row = asdict(v) | {"seeds": " ".join(map(str, v.seeds))}
        row["differences"] = " ".join(f"{s}:{d:.6g}" for s, d in zip(v.seeds, v.differences, strict=True))
        rows.append(row)
    return pd.DataFrame(rows, columns=list(Verdict.__dataclass_fields__))


def read(path: Path) -> list[Verdict]:
    """The verdicts of a CSV file that holds a frame(); differences to six digits."""
    counts = dict.fromkeys(("n", "looks", "asked", "agree"), int)
    numbers = {"margin": float} | counts | dict.fromkeys(NUMBERS, float)
    types = {field.name: numbers.get(field.name, str) for field in fields(Verdict)}
    empty = {name: [""] for name in NUMBERS}
    frame = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=empty)
    if missing := [name for name in types if name not in frame]:
        raise UserError(
            f"{path}: no column {missing[0]}: an older version wrote it; run analysis.report again"
        )
    verdicts = []
    for row in frame[list(types)].to_dict("records"):
        parts = [pair.split(":") for pair in row["differences"].split()]
        parsed = {
            "seeds": tuple(int(seed) for seed, _ in parts),
            "differences": tuple(float(difference) for _, difference in parts),
        }
        whole = {name: None if math.isnan(row[name]) else int(row[name]) for name in WHOLE}
        verdicts.append(Verdict(**{str(name): value for name, value in row.items()} | parsed | whole))
    return verdicts


class Judged(Protocol):
    """What has a verdict."""

    @property
    def verdict(self) -> str: ...


def tally(verdicts: Iterable[Judged]) -> dict[str, int]:
    """How many claims got each verdict, in the order of VERDICTS; verdicts that no claim got are left out."""
    given = [v.verdict for v in verdicts]
    return {name: given.count(name) for name in VERDICTS if name in given}
