"""The plan of a study: how many seeds will decide its claims, by the spread of a pilot.

The pilot is the runs that the study has so far, two seeds or more. The mean and the standard deviation (the
spread) of its differences are assumed to be the true ones. Normal differences are drawn for many studies, and
each study is judged by verdicts.rule at the planned looks. So the chances allow for the number of claims and
looks. A few seeds determine a spread only roughly, so the chances are computed again with the upper 80% bound
of the spread.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from analysis.statistics.intervals import POWER, TAIL, detectable
from analysis.statistics.sequential import nominal
from analysis.study.document import Study, load
from analysis.study.numbers import collect
from analysis.verdicts import claims, evidence
from analysis.verdicts.collapse import Collapses
from analysis.verdicts.pairs import Pairs
from analysis.verdicts.rule import Asked, Decision, Sample, judge
from encore.errors import UserError, nearest
from encore.recipe.claims import Claim
from encore.recipe.looks import LOOKS
from encore.runtime import files, suite

STUDIES = 2000  # number of simulated studies, which determine a chance to within 0.02
SEED = 0
BOUND = 0.8  # level of a spread's upper bound
RECORDS = suite.folder(suite.CODE) / "results/published"
FEW = 4  # a number of seeds below the first look, which many studies use


@dataclass(frozen=True)
class Pilot:
    """The assumptions on a claim: its mean difference, and the spread (standard deviation) over seeds."""

    claim: Claim
    effect: float
    spread: float
    seeds: int  # number of seeds of the pilot; 0 if the user gave the spread
    error: float = 0.0  # the standard error that all differences share

    @property
    def upper(self) -> float:
        """The upper bound on the spread at level BOUND, by the chi-squared distribution."""
        if not self.seeds:
            return self.spread
        return float(self.spread * math.sqrt((self.seeds - 1) / stats.chi2.ppf(1 - BOUND, self.seeds - 1)))


@dataclass(frozen=True)
class Power:
    """The chances that the planned looks decide a claim; a tuple has an entry for each look."""

    pilot: Pilot
    decided: tuple[float, ...]  # the chance that the claim is decided by this look, if the pilot is the truth
    decided_at_bound: tuple[float, ...]  # the same chance with the upper bound of the spread
    found: tuple[float, ...]  # distance of the true difference from a bound that is detected with 80% power
    half_width: float  # half the width of a 95% interval with FEW seeds


def spread_of(text: str) -> float:
    """Return the spread over seeds that a text gives: as a number, or as RECORD/CLAIM.

    RECORD/CLAIM is a published claim, such as `r1_zero-cpu/claim`, whose spread is used. Raises UserError if
    the text is neither.
    """
    record, slash, claim = text.partition("/")
    if slash:
        file = RECORDS / record / "claims.csv"
        if not file.is_file():
            known = sorted(path.parent.name for path in RECORDS.glob("*/claims.csv"))
            raise UserError(f'--spread: no record "{record}"{nearest(record, known)}')
        judged = {
            each.id: each.differences for each in claims.read_verdicts(file) if len(each.differences) > 1
        }
        if claim not in judged:
            raise UserError(f'--spread: {record} has no claim "{claim}"{nearest(claim, [*judged])}')
        return float(np.std(judged[claim], ddof=1))
    try:
        spread = float(text)
    except ValueError:
        spread = math.nan
    if not (math.isfinite(spread) and spread > 0):
        raise UserError(f"--spread: expected a number above 0, or RECORD/CLAIM, got {text}")
    return spread


def pilots(study: Study, folder: Path, spread: float | None) -> list[Pilot]:
    """Return the pilot of each claim, from the runs of a study or, if it is not None, from `spread`.

    With `spread`, no run is needed: the effect is then the margin plus the smallest effect that matters, or 0
    for a claim of equality. Without it, raises UserError if a claim has fewer than two differences.
    """
    if spread is not None:
        return [Pilot(claim, _hoped(claim), spread, 0) for claim in study.claims.values()]
    collected = collect(study, folder)
    result = []
    for claim in study.claims.values():
        paired = evidence.evidence(claim, collected.table, "", collected.seeds, {}, Collapses()).paired
        if len(paired.differences) < 2:
            known_seeds = "one seed has" if paired.differences else "no seed has"
            seeds = paired.notes[0] if paired.notes else f"{known_seeds} both sides"
            raise UserError(f"claims.{claim.id}: {seeds}; a spread needs two seeds; or give --spread")
        d = np.array(paired.differences)
        result.append(Pilot(claim, float(d.mean()), float(d.std(ddof=1)), len(d), paired.error))
    return result


def _hoped(claim: Claim) -> float:
    """Return the effect that a study without runs is planned for: margin plus smallest effect, signed."""
    test = claim.test
    if test.direction == "equal":
        return 0.0
    return (test.margin + test.matters) * (1 if test.direction == "higher" else -1)


def power(known: Sequence[Pilot]) -> list[Power]:
    """Return the chances of each claim to be decided; `known` has the pilots of all claims of a study."""
    asked = evidence.asked([evidence.Evidence(pilot.claim, Pairs()) for pilot in known])
    decided = _decided(known, asked)
    at_bound = _decided([replace(pilot, spread=pilot.upper) for pilot in known], asked)
    primaries = max(int(asked.primary.sum()), 1)
    others = max(len(known) - int(asked.primary.sum()), 1)
    powers = []
    for i, pilot in enumerate(known):
        alpha = float(asked.alpha[i]) / (primaries if asked.primary[i] else others)
        like = [pilot.spread / math.sqrt(2), -pilot.spread / math.sqrt(2)]  # two values with this spread
        distances = [
            detectable(like, float(nominal(alpha / 2, index)), POWER, look, pilot.error)
            for index, look in enumerate(LOOKS)
        ]
        half = stats.t.isf(TAIL, FEW - 1) * math.hypot(pilot.spread / math.sqrt(FEW), pilot.error)
        powers.append(
            Power(
                pilot,
                decided=tuple(decided[:, i].tolist()),
                decided_at_bound=tuple(at_bound[:, i].tolist()),
                found=tuple(distances),
                half_width=float(half),
            )
        )
    return powers


def _decided(known: Sequence[Pilot], asked: Asked) -> np.ndarray:
    """Return the probability (looks, claims) that a claim is decided at a look or before."""
    rng = np.random.default_rng(SEED)
    effect, spread, error = np.array([(each.effect, each.spread, each.error) for each in known]).T
    drawn = rng.normal(effect, spread, (LOOKS[-1], STUDIES, len(known))).transpose(1, 2, 0)
    drawn = drawn + rng.normal(0.0, 1.0, (STUDIES, len(known), 1)) * error[:, None]
    decision: Decision | None = None
    chances = []
    for index, look in enumerate(LOOKS):
        sample = Sample(
            drawn[..., :look],  # (studies, claims, seeds)
            np.broadcast_to(error, drawn.shape[:2]),
            np.zeros(drawn.shape[:2], bool),
        )
        decision = judge(sample, asked, index, decision)
        chances.append(decision.decided.mean(axis=0))
    return np.array(chances)


def frame(powers: Sequence[Power]) -> pd.DataFrame:
    """Return a table with a row for each claim and look; column `seeds` is the look's number of seeds."""
    return pd.DataFrame(
        [
            {
                "claim": each.pilot.claim.id,
                "pilot_seeds": each.pilot.seeds,
                "effect": each.pilot.effect,
                "spread": each.pilot.spread,
                "spread_bound": each.pilot.upper,
                "seeds": look,
                "decided": each.decided[index],
                "decided_at_bound": each.decided_at_bound[index],
                "found": each.found[index],
            }
            for each in powers
            for index, look in enumerate(LOOKS)
        ]
    )


def lines(powers: Sequence[Power]) -> list[str]:
    """Return lines for the terminal: four for each claim (itself and three looks), and one on FEW seeds."""
    said = []
    for each in powers:
        pilot = each.pilot
        origin = f"{pilot.seeds} seeds of a pilot" if pilot.seeds else "as given"
        said.append(
            f"{pilot.claim.id}: {pilot.effect:+.3g}, a spread of {pilot.spread:.3g} over seeds ({origin})"
        )
        looks = zip(LOOKS, each.decided, each.decided_at_bound, each.found, strict=True)
        for look, chance, bound, distance in looks:
            unsure = f" ({bound:.0%} at a spread of {pilot.upper:.3g})" if pilot.seeds else ""
            share = f"decided in {chance:.0%} of studies{unsure}"
            said.append(f"  {look:>2} seeds: {share}; told from a bound: {distance:.3g}")
    widths = ", ".join(f"±{each.half_width:.3g}" for each in powers)
    return [*said, f"{FEW} seeds decide nothing here; their 95% intervals would be {widths}"]


def command(path: Path, spread: str | None, out: Path | None) -> list[str]:
    """Plan the study in a file, write power.csv, and return the text for a terminal. Raises UserError."""
    powers = power(pilots(load(path), path.parent, spread_of(spread) if spread else None))
    folder = out or path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / "power.csv", frame(powers).to_csv(index=False))
    return [*lines(powers), f"{folder / 'power.csv'}"]
