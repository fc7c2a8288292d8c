"""Verdicts: is what the paper says true of this run?

A claim was written before the run. It names a difference d = `of` - `against` (or `of` alone) in a `metric`
(of `against` maybe in another, `against_metric`), a direction and a margin m >= 0.

    higher:  d > m          lower:  d < -m          equal:  |d| < m

The differences are paired by seed; their mean has a 95% bootstrap interval (statistics.intervals).

    reproduced      every value in the interval satisfies the claim, and so says the claim's own test
    contradicted    no value in the interval satisfies it, and so says the test of its opposite
    inconclusive    neither

The tests are one-sided paired t tests; for `equal` TOST (statistics.hypotheses). Holm's correction is made
over all claims of the recipe that were tested, once for the tests of the claims and once for the tests of
their opposites. So the chance that any claim is wrongly called reproduced is at most 5%, however many claims
there are; the same holds for contradicted. Interval and test must agree because each has a blind spot: a
bootstrap of few seeds cannot see beyond their range, and a t test supposes that the differences are nearly
normal. The test has 5% on its one side, the interval 2.5% on each of two: for a claim that stands alone the
interval is the stricter.

An effect in the claimed direction but surely smaller than the margin *contradicts* the claim; the note then
says that the direction holds. Below 5 seeds nothing is decided and nothing is corrected: by the interval
alone, `reproduced` becomes `supported so far` and `contradicted` becomes `opposed so far`. With one seed
there is no interval, and the single difference is judged in its place. What was not run is `not tested`,
with the reason, never an error.

Where some runs never reached a level, a difference is known from one side only (verdicts.pairs). A verdict
that the other side could overturn is not given: its p-value is 1.

Seeds count as independent only if at least one side was trained anew: seeds that share both artefacts (a
stage pinned to one seed) count once.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis.numbers.means import Mean
from analysis.statistics.hypotheses import ALPHA, constant, holm, p_claim, p_opposite
from analysis.statistics.intervals import ENOUGH, TAIL, detectable, interval, seeds_needed
from analysis.verdicts.pairs import Pairs, pairs
from recipes.errors import UserError

VERDICTS = (
    "reproduced",
    "supported so far",
    "inconclusive",
    "opposed so far",
    "contradicted",
    "not tested",
)
SO_FAR = {"reproduced": "supported so far", "contradicted": "opposed so far"}
FAILED = ("contradicted", "opposed so far")


class PValues(NamedTuple):
    """p-values of the claim's test and of its opposite's, also corrected; nan where there is no test."""

    p: float
    p_holm: float
    p_opposite: float
    p_opposite_holm: float


@dataclass(frozen=True)
class Verdict:
    """One judged claim. Numbers are nan where there are none; `differences` are in the order of `seeds`."""

    id: str
    says: str
    source: str
    metric: str
    of: str
    against: str
    direction: str
    margin: float
    n: int
    mean: float
    low: float
    high: float
    p: float  # see PValues
    p_holm: float
    p_opposite: float
    p_opposite_holm: float
    verdict: str
    agree: int  # seeds whose own difference satisfies the claim
    needed: int | None  # seeds for a decision; None: decided already, unknown, or more than 1000
    detectable: float  # smallest effect that these seeds find with 80% power, at Holm's first step
    seeds: tuple[int, ...]
    differences: tuple[float, ...]
    note: str

    @property
    def estimate(self) -> Mean:
        """The mean difference with its interval."""
        return Mean(self.mean, self.low, self.high, self.n, "seeds")

    @property
    def seeds_so_far(self) -> str:
        """`3 of 5 seeds` where nothing can be decided yet, else empty."""
        return f"{self.n} of {ENOUGH} seeds" if 0 < self.n < ENOUGH else ""

    @property
    def p_decisive(self) -> float:
        """The corrected p-value behind the verdict: of the claim, or of its opposite if the claim failed."""
        return self.p_opposite_holm if self.verdict in FAILED else self.p_holm


NUMBERS = ("mean", "low", "high", "needed", "detectable", *PValues._fields)  # columns that may be empty


def satisfies(d: float, direction: str, margin: float) -> bool:
    """Whether one difference satisfies a claim."""
    if direction == "equal":
        return abs(d) < margin
    return d > margin if direction == "higher" else d < -margin


def decide(low: float, high: float, direction: str, margin: float) -> str:
    """reproduced, contradicted or inconclusive for an interval [low, high]; see the module's docstring."""
    if direction == "equal":
        inside, outside = -margin < low and high < margin, low >= margin or high <= -margin
    elif direction == "higher":
        inside, outside = low > margin, high <= margin
    else:
        inside, outside = high < -margin, low >= -margin
    return "reproduced" if inside else "contradicted" if outside else "inconclusive"


def _distance(mean: float, direction: str, margin: float) -> float:
    """How far the mean is from the nearest value at which the claim turns true or false."""
    if direction == "equal":
        return abs(abs(mean) - margin)
    return abs(mean - margin) if direction == "higher" else abs(mean + margin)


def judge_all(
    claims: Iterable[dict[str, Any]],
    table: pd.DataFrame,
    scale: str,
    seeds: Iterable[int],
    stopped: Mapping[str, int] | None = None,
) -> list[Verdict]:
    """Every claim's verdict, in the recipe's order, from the tidy table of what was asked for.

    `stopped`: see pairs.pairs.
    """
    wanted, stated = list(seeds), list(claims)
    paired = [pairs(claim, table, scale, wanted, stopped) for claim in stated]
    tests = [_tests(claim, one) for claim, one in zip(stated, paired, strict=True)]
    own, opposite = ([test[side] for test in tests] for side in (0, 1))
    p = [PValues(*values) for values in zip(own, holm(own), opposite, holm(opposite), strict=True)]
    k = sum(not math.isnan(value) for value in own)
    return [_verdict(*judged, k) for judged in zip(stated, paired, p, strict=True)]


def _tests(claim: dict[str, Any], paired: Pairs) -> tuple[float, float]:
    """p-values of the claim and of its opposite, uncorrected; 1 where the unknown side could overturn it."""
    d, direction, margin = paired.differences, claim["direction"], float(claim["margin"])
    if len(d) < 2:
        return math.nan, math.nan
    own, opposite = open_to_doubt(paired, direction)
    return (
        1.0 if own else p_claim(d, direction, margin),
        1.0 if opposite else p_opposite(d, direction, margin),
    )


def open_to_doubt(paired: Pairs, direction: str) -> tuple[bool, bool]:
    """Whether differences known from one side only could overturn `reproduced`, and `contradicted`."""
    if direction == "equal":
        positive = sum(paired.differences) >= 0
        return paired.at_least or paired.at_most, paired.at_most if positive else paired.at_least
    too_low, too_high = paired.at_least, paired.at_most  # as they are counted
    return (too_high, too_low) if direction == "higher" else (too_low, too_high)


def _verdict(claim: dict[str, Any], paired: Pairs, p: PValues, k: int) -> Verdict:
    margin, direction = float(claim["margin"]), claim["direction"]
    d, n, notes = paired.differences, len(paired.differences), list(paired.notes)
    mean = sum(d) / n if n else math.nan
    low, high = interval(d) if n > 1 else (math.nan, math.nan)
    verdict, why, needed = "not tested", "", None
    if n:
        by_interval = decide(low, high, direction, margin) if n > 1 else decide(mean, mean, direction, margin)
        verdict, why = _conclude(by_interval, p, n, k, open_to_doubt(paired, direction))
        if verdict in FAILED and direction != "equal" and satisfies(mean, direction, 0.0):
            notes.append("the direction holds, the size is below the margin")
        if n >= ENOUGH and constant(d):
            notes.append(f"all {n} differences are equal: the test is its limit")
        if not (paired.at_least or paired.at_most or verdict in SO_FAR):
            needed = seeds_needed(d, _distance(mean, direction, margin), tail(k))
    against = claim.get("against", "")
    if "against_metric" in claim:
        against = f"{against} ({claim['against_metric']})"
    return Verdict(
        id=claim["id"],
        says=claim["says"],
        source=claim["source"],
        metric=claim["metric"],
        of=claim["of"],
        against=against,
        direction=direction,
        margin=margin,
        n=n,
        mean=mean,
        low=low,
        high=high,
        **p._asdict(),
        verdict=verdict,
        agree=sum(satisfies(x, direction, margin) for x in d),
        needed=None if needed is None else max(needed, n + 1),
        detectable=detectable(d, tail(k)),
        seeds=paired.seeds,
        differences=d,
        note="; ".join([*notes, why] if why else notes),
    )


def tail(k: int) -> float:
    """Level that decides one of k claims whatever the others are: the interval's or Holm's first."""
    return min(TAIL, ALPHA / max(k, 1))


def _conclude(by_interval: str, p: PValues, n: int, k: int, doubts: tuple[bool, bool]) -> tuple[str, str]:
    """The verdict, and the reason where it is not what the interval says."""
    if by_interval not in SO_FAR:
        return by_interval, ""
    doubt, alone, among = doubts[0], p.p, p.p_holm
    if by_interval == "contradicted":
        doubt, alone, among = doubts[1], p.p_opposite, p.p_opposite_holm
    if doubt:
        return "inconclusive", f"not {by_interval}: the differences known from one side could overturn it"
    if n < ENOUGH:
        return SO_FAR[by_interval], ""
    if among < ALPHA:
        return by_interval, ""
    if alone < ALPHA:
        corrected = f"not after Holm's correction over {k} claims (p = {among:.2g})"
        return "inconclusive", f"alone it would be {by_interval} (p = {alone:.2g}); {corrected}"
    return "inconclusive", f"{by_interval} by its interval, but not by its t test (p = {alone:.2g})"


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
    numbers = {"margin": float, "n": int, "agree": int} | dict.fromkeys(NUMBERS, float)
    types = {field.name: numbers.get(field.name, str) for field in fields(Verdict)}
    empty = {name: [""] for name in NUMBERS}
    frame = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=empty)
    if missing := [name for name in types if name not in frame]:
        raise UserError(
            f"{path}: no column {missing[0]}: an older version wrote it; run analysis.analyse again"
        )
    verdicts = []
    for row in frame[list(types)].to_dict("records"):
        parts = [pair.split(":") for pair in row["differences"].split()]
        parsed = {
            "seeds": tuple(int(seed) for seed, _ in parts),
            "differences": tuple(float(difference) for _, difference in parts),
            "needed": None if math.isnan(row["needed"]) else int(row["needed"]),
        }
        verdicts.append(Verdict(**{str(name): value for name, value in row.items()} | parsed))
    return verdicts


def tally(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many claims got each verdict, in the order of VERDICTS; verdicts that no claim got are left out."""
    given = [v.verdict for v in verdicts]
    return {name: given.count(name) for name in VERDICTS if name in given}
