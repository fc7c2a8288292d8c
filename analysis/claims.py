"""Verdicts: is what the paper says true of this run?

A claim was written before the run: d = `of` - `against` (or `of` alone) in a `metric` (or the one less the
other's `against_metric`), a direction and a margin m >= 0.

    higher:  d > m          lower:  d < -m          equal:  |d| < m

The differences are paired by seed; their mean has a 95% bootstrap interval (statistics.interval).

    reproduced      every value in the interval satisfies the claim
    contradicted    no value in the interval satisfies it
    inconclusive    some do and some do not

So an effect in the claimed direction but surely smaller than the margin *contradicts* the claim; the note
then says that the direction holds. Below 5 seeds nothing is decided: `reproduced` becomes `supported so far`
and `contradicted` becomes `opposed so far`. With one seed there is no interval, and the single difference
is judged in its place. What was not run is `not tested`, with the reason, never an error.

Seeds count as independent only if at least one side was made anew: seeds that share both artefacts (a stage
pinned to one seed) count once.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.statistics import ENOUGH, detectable, interval, seeds_needed

VERDICTS = (
    "reproduced",
    "supported so far",
    "inconclusive",
    "opposed so far",
    "contradicted",
    "not tested",
)
NUMBERS = ("mean", "low", "high", "needed", "detectable")  # of a verdict, where there are any
MEASURED = ["seed", "value", "low", "high", "source"]
SO_FAR = {"reproduced": "supported so far", "contradicted": "opposed so far"}


@dataclass(frozen=True)
class Verdict:
    """One judged claim. Numbers are nan where there is nothing to say; `differences` goes with `seeds`."""

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
    verdict: str
    agree: int  # seeds whose own difference satisfies the claim
    needed: int | None  # seeds for a decision; None: decided, cannot be said, or more than 1000
    detectable: float  # smallest effect these seeds would find with 80% power
    seeds: tuple[int, ...]
    differences: tuple[float, ...]
    note: str

    @property
    def seeds_so_far(self) -> str:
        """`3 of 5 seeds` where nothing can be decided yet, else empty."""
        return f"{self.n} of {ENOUGH} seeds" if 0 < self.n < ENOUGH else ""


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


def distance(mean: float, direction: str, margin: float) -> float:
    """How far the mean is from the nearest value at which the claim turns true or false."""
    if direction == "equal":
        return abs(abs(mean) - margin)
    return abs(mean - margin) if direction == "higher" else abs(mean + margin)


def measured(table: pd.DataFrame, at: str, metric: str) -> pd.DataFrame:
    """The final numbers of `metric` at `arm/node`: columns value, low, high, source; indexed by seed."""
    arm, _, node = at.partition("/")
    rows = table.loc[table.metric == metric, ["arm", "node", "step", *MEASURED]]  # few are left to compare
    rows = rows.loc[(rows.arm == arm) & (rows.node == node) & rows.step.isna(), MEASURED]
    return rows.set_index("seed").sort_index()


def judge(claim: dict[str, Any], table: pd.DataFrame, scale: str, seeds: Iterable[int]) -> Verdict:
    """The verdict on one claim of a recipe, from the tidy table of the arms and seeds that were asked for."""
    margin, direction = float(claim["margin"]), claim["direction"]
    pairs, notes = _pairs(claim, table, scale, list(seeds))
    d = pairs["d"].tolist() if len(pairs) else []
    n = len(d)
    mean = sum(d) / n if n else math.nan
    low, high = interval(d) if n > 1 else (math.nan, math.nan)
    verdict = "not tested"
    if n:
        verdict = decide(low, high, direction, margin) if n > 1 else decide(mean, mean, direction, margin)
        if verdict == "contradicted" and direction != "equal" and satisfies(mean, direction, 0.0):
            notes.append("the direction holds, the size is below the margin")
        if n < ENOUGH:
            verdict = SO_FAR.get(verdict, verdict)
    against = claim.get("against", "")
    if "against_metric" in claim:
        against = f"{against} ({claim['against_metric']})"
    needed = seeds_needed(d, distance(mean, direction, margin))
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
        verdict=verdict,
        agree=sum(satisfies(x, direction, margin) for x in d),
        needed=None if verdict in ("reproduced", "contradicted") else needed,
        detectable=detectable(d),
        seeds=tuple(int(s) for s in pairs.index) if n else (),
        differences=tuple(d),
        note="; ".join(notes),
    )


def _pairs(
    claim: dict[str, Any], table: pd.DataFrame, scale: str, seeds: list[int]
) -> tuple[pd.DataFrame, list[str]]:
    """Column d by seed, and what to say about it: why it is empty, or which seeds it lacks."""
    nothing = pd.DataFrame({"d": []})
    if scale not in claim.get("scales", [scale]):
        return nothing, [f"claimed at scale {', '.join(claim['scales'])} only"]
    sides = [(claim["of"], claim["metric"])]
    if claim.get("against"):
        sides.append((claim["against"], claim.get("against_metric", claim["metric"])))
    for at, metric in sides:
        arm = at.partition("/")[0]
        if arm not in set(table.arm):
            return nothing, [f"arm {arm} was not run"]
        if not len(measured(table, at, metric)):
            return nothing, [f"no {metric} at {at}"]
    of = measured(table, *sides[0])
    pairs = pd.DataFrame({"d": of.value, "source": of.source})
    if len(sides) == 2:
        against = measured(table, *sides[1])
        pairs = pd.DataFrame({"d": of.value - against.value, "source": of.source + " " + against.source})
    pairs = pairs.dropna(subset=["d"])
    missing = [s for s in seeds if s not in pairs.index]
    notes = [f"no number for seed {', '.join(map(str, missing))}"] if missing else []
    alone = pairs.drop_duplicates("source")
    if len(alone) < len(pairs):
        notes.append(f"{len(pairs)} seeds share {len(alone)} model{'s' * (len(alone) > 1)}")
    return alone, notes


def judge_all(
    claims: Iterable[dict[str, Any]], table: pd.DataFrame, scale: str, seeds: Iterable[int]
) -> list[Verdict]:
    """Every claim's verdict, in the recipe's order."""
    wanted = list(seeds)
    return [judge(claim, table, scale, wanted) for claim in claims]


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
    verdicts = []
    for row in frame.to_dict("records"):
        pairs = [pair.split(":") for pair in row["differences"].split()]
        parsed = {
            "seeds": tuple(int(seed) for seed, _ in pairs),
            "differences": tuple(float(difference) for _, difference in pairs),
            "needed": None if math.isnan(row["needed"]) else int(row["needed"]),
        }
        verdicts.append(Verdict(**{str(name): value for name, value in row.items()} | parsed))
    return verdicts


def tally(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many claims got each verdict, in the order of VERDICTS, without the zeros."""
    found = [v.verdict for v in verdicts]
    return {name: found.count(name) for name in VERDICTS if name in found}
