"""The evidence on a claim at a look: its paired differences, and whether the mean or the median decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.verdicts import comparable, gates
from analysis.verdicts.collapse import Collapses
from analysis.verdicts.pairs import Pairs, constant, pairs
from analysis.verdicts.rule import Asked, Sample, alpha_of
from encore.recipe.claims import Claim, Gate
from encore.recipe.looks import LOOKS

FEWEST = 5  # smallest number of differences at a look if numbers are missing


@dataclass(frozen=True)
class Evidence:
    """The evidence by which one claim is judged."""

    claim: Claim
    paired: Pairs
    by_median: bool = False  # whether runs of only one side have collapsed
    notes: tuple[str, ...] = ()  # notes on how the claim is judged, and on what may mislead in its comparison

    @property
    def unknown_above(self) -> bool:
        """Whether some true differences may be larger than the measured ones, or are of unknown size."""
        return self.paired.at_least or self._unclear

    @property
    def unknown_below(self) -> bool:
        """Whether some true differences may be smaller than the measured ones, or are of unknown size."""
        return self.paired.at_most or self._unclear

    @property
    def _unclear(self) -> bool:
        """Whether the sign test decides although all seeds share a run, whose error it cannot include."""
        return self.by_median and self.paired.error > 0


def evidence(
    claim: Claim,
    table: pd.DataFrame,
    scale: str,
    seeds: Sequence[int],
    places: Mapping[str, Gate],
    collapses: Collapses,
) -> Evidence:
    """Return the evidence on a claim at a scale; `table`: final numbers, `places`: the recipe's gates."""
    if not claim.is_at(scale):
        return Evidence(claim, Pairs(notes=(f"claimed at scale {', '.join(claim.scales or ())} only",)))
    paired = pairs(claim.test, table, seeds)
    if paired.seeds and (absent := gates.absent(claim, places, table, seeds)):
        paired = Pairs(notes=(absent,))
    if not paired.seeds:
        return Evidence(claim, paired)
    rates = collapses.beside(claim.test, paired.seeds)
    by_median = rates is not None and rates.one_sided
    notes = [f"{rates}{': judged by the median' if by_median else ''}"] if rates else []
    if by_median and paired.error:
        notes.append("the sign test cannot count the error of the one run: the claim stays open")
    notes += comparable.doubts(claim.test, table, paired.differences)
    if len(paired.seeds) >= FEWEST and constant(paired.differences) and not paired.error:
        notes.append(f"all {len(paired.seeds)} differences are equal: the interval is one number")
    return Evidence(claim, paired, by_median, tuple(notes))


def sample(claims: Sequence[Evidence], seeds: int) -> Sample:
    """Return the differences (claims, seeds) of claims, for a run of `seeds` seeds.

    From the first look on, a claim with fewer than FEWEST differences counts as a claim without differences.
    """
    longest = max((len(item.paired.differences) for item in claims), default=0)
    differences = np.full((len(claims), max(longest, 2)), np.nan)
    least = FEWEST if seeds >= LOOKS[0] else 2
    for row, item in zip(differences, claims, strict=True):
        if len(item.paired.differences) >= least:
            row[: len(item.paired.differences)] = item.paired.differences
    return Sample(
        differences,
        error=np.array([item.paired.error for item in claims]),
        by_median=np.array([item.by_median for item in claims]),
        at_least=np.array([item.unknown_above for item in claims]),
        at_most=np.array([item.unknown_below for item in claims]),
    )


def asked(claims: Sequence[Evidence]) -> Asked:
    """Return the direction, margin, smallest effect, family and alpha of these claims, for verdicts.rule."""
    tests = [item.claim.test for item in claims]
    return Asked(
        direction=np.array([test.direction for test in tests]),
        margin=np.array([test.margin for test in tests]),
        smallest_effect=np.array([test.matters for test in tests]),
        primary=np.array([item.claim.primary for item in claims]),
        alpha=np.array([alpha_of(item.claim.attempt) for item in claims]),
    )
