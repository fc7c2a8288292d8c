"""A judged claim: the comparison and its outcome, and a table of judged claims as a CSV file.

A claim should be written before the run; verdicts.written says whether the claims of a record were. It names
a difference d = `of` - `against` (or `of` alone) in a `metric`, a direction and a margin m >= 0. The side
`against` may have a metric of its own, `against_metric`.

    higher:  d > m        lower:  d < -m        equal:  |d| < m

verdicts.rule and verdicts.decision say how a verdict is reached.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Protocol

import pandas as pd

from analysis.numbers.means import Mean
from analysis.verdicts.rule import OPEN, WORDS
from encore.errors import UserError
from encore.recipe.looks import LOOKS

NOT_TESTED = "not tested"  # used instead of a word of verdicts.rule if numbers or a precondition are missing
VERDICTS = (*WORDS, NOT_TESTED)


@dataclass(frozen=True)
class Verdict:
    """A judged claim. Missing numbers are nan; `differences` are in the order of `seeds`."""

    id: str
    says: str
    source: str
    paper: str  # author of the claim: an arXiv number, an address or `ours`
    family: str  # primary | secondary
    attempt: int  # how often the claim was tested, this test included; the world changed before each new test
    metric: str
    of: str
    against: str
    direction: str
    margin: float
    smallest_effect: float  # |d| below which a difference does not matter
    word: str  # the verdict: one of VERDICTS
    estimate: float  # the mean difference, or the median
    by_median: bool  # whether the median is used, because runs of only one side collapsed
    low: float  # lower end of the interval that decides
    high: float
    level: float  # probability that the interval contains the truth, for the look and the family of claims
    plain_low: float  # lower end of the plain 95% interval
    plain_high: float
    n: int  # number of differences that were judged
    agree: int  # number of seeds whose own difference satisfies the claim
    # seeds of the look that decided, or of the last look; None before any look, or if not tested
    look: int | None
    asked: int  # seeds of the run; some may lack a number, and some may wait for the next look
    # seeds of the planned look that will probably decide; None if it is decided, none will, or it is unknown
    needed: int | None
    detectable: float  # smallest effect that the look detects with 80% power; nan for a median
    seeds: tuple[int, ...]
    differences: tuple[float, ...]
    note: str

    @property
    def difference(self) -> Mean:
        """The mean or median difference, and the interval that decides."""
        return Mean(self.estimate, self.low, self.high, self.n, "seeds")

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval that decides; nan before the first look."""
        return self.low, self.high

    @property
    def plain(self) -> Mean:
        """The mean or median difference, and its plain 95% interval."""
        return Mean(self.estimate, self.plain_low, self.plain_high, self.n, "seeds")

    @property
    def decided(self) -> bool:
        """Whether the verdict is final, because more seeds would not change it."""
        return self.word != OPEN

    @property
    def stands_at(self) -> str:
        """The text `look 1, 8 seeds` for a decided claim, `5 of 8 seeds` for a claim that waits; else ""."""
        if self.decided and self.look:
            return f"look {LOOKS.index(self.look) + 1}, {self.look} seeds"
        to_come = [look for look in LOOKS if look > self.asked]
        return f"{self.asked} of {to_come[0]} seeds" if to_come and not self.decided else ""


WHOLE = ("look", "needed")  # columns of whole numbers that may be empty
INTERVALS = ("estimate", "low", "high", "level", "plain_low", "plain_high")
NUMBERS = ("smallest_effect", *INTERVALS, "detectable", *WHOLE)  # columns of numbers that may be empty


def satisfies(d: float, direction: str, margin: float) -> bool:
    """Return whether the difference `d` satisfies a claim with this direction and margin."""
    if direction == "equal":
        return abs(d) < margin
    return d > margin if direction == "higher" else d < -margin


def frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return a table with a row for each verdict and a column for each field.

    The differences are written as `seed:difference`, so that read_verdicts() can read them from a CSV file.
    """
    rows = []
    for v in verdicts:
        row = asdict(v) | {"seeds": " ".join(map(str, v.seeds))}
        row["differences"] = " ".join(f"{s}:{d:.6g}" for s, d in zip(v.seeds, v.differences, strict=True))
        rows.append(row)
    return pd.DataFrame(rows, columns=list(Verdict.__dataclass_fields__))


def read_verdicts(path: Path) -> list[Verdict]:
    """Return the verdicts in a CSV file that was made by frame(); differences have six significant digits.

    Raises UserError if a column is missing.
    """
    counts = dict.fromkeys(("attempt", "n", "asked", "agree"), int) | {"by_median": bool}
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


class JudgedClaims(tuple[Verdict, ...]):
    """The verdicts on some claims, in the order of the claims."""

    def frame(self) -> pd.DataFrame:
        """Return a table with a row for each claim, as in `claims.csv`."""
        return frame(self)


class Judged(Protocol):
    """An object with a verdict, such as a Verdict or a line of the scoreboard."""

    @property
    def word(self) -> str: ...


def tally(verdicts: Iterable[Judged]) -> dict[str, int]:
    """Return verdict -> the number of claims with it, in the order of VERDICTS, without zeros."""
    words = [v.word for v in verdicts]
    return {word: words.count(word) for word in VERDICTS if word in words}
