"""What a claim is judged by: its paired differences, and their p-values at each planned look.

Where some runs never reached a level, a difference is known from one side only (verdicts.pairs). A statement
that the other side could overturn is not made: its p-value is 1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.verdicts import comparable, gates
from analysis.verdicts.pairs import Pairs, pairs
from analysis.verdicts.statements import STATEMENTS, p_values
from encore.recipe.claims import Claim, Gate, Test
from encore.recipe.looks import LOOKS

FEWEST = 5  # differences that a look must have, if numbers are missing


@dataclass(frozen=True)
class Evidence:
    """What one claim is judged by; p-values in the order of STATEMENTS."""

    claim: Claim
    paired: Pairs
    at_looks: np.ndarray  # p-values (statements, looks); nan: not taken
    now: np.ndarray  # over all seeds (statements,)
    doubts: tuple[str, ...] = ()  # what may mislead in the comparison

    @property
    def primary(self) -> bool:
        return self.claim.primary

    @property
    def tested(self) -> bool:
        return not math.isnan(self.now[0])


def evidence(
    claim: Claim, table: pd.DataFrame, scale: str, seeds: Sequence[int], places: Mapping[str, Gate]
) -> Evidence:
    """Return what a claim is judged by at a scale; `table`: final numbers, `places`: gates of the recipe."""
    if claim.is_at(scale):
        paired = pairs(claim.test, table, seeds)
    else:
        paired = Pairs(notes=(f"claimed at scale {', '.join(claim.scales or ())} only",))
    if paired.seeds and (absent := gates.absent(claim, places, table, seeds)):
        paired = Pairs(notes=(absent,))
    tests = [_tests(claim.test, paired, seeds[:look]) if look <= len(seeds) else _none() for look in LOOKS]
    for i, look in enumerate(LOOKS):  # where an arm was stopped, a later look has nothing new
        if i and _known(paired, seeds[:look]) == _known(paired, seeds[: LOOKS[i - 1]]):
            tests[i] = _none()
    now = _tests(claim.test, paired, seeds, fewest=2)
    doubts = comparable.doubts(claim.test, table, paired.differences) if paired.seeds else []
    return Evidence(claim, paired, np.stack(tests, axis=-1), now, tuple(doubts))


def _none() -> np.ndarray:
    return np.full(len(STATEMENTS), np.nan)


def _known(paired: Pairs, seeds: Sequence[int]) -> int:
    return len(set(paired.seeds) & set(seeds))


def _tests(test: Test, paired: Pairs, seeds: Sequence[int], fewest: int = FEWEST) -> np.ndarray:
    """p-values (statements,) over these seeds; 1 where the unknown side could overturn one; nan: too few."""
    d = [x for seed, x in zip(paired.seeds, paired.differences, strict=True) if seed in seeds]
    if len(d) < fewest:
        return _none()
    p = p_values(d, test.direction, test.margin, test.matters, paired.error)
    own, opposite = open_to_doubt(paired, test.direction)
    doubts = np.array([own, opposite, own, own or opposite, opposite])
    return np.where(doubts & ~np.isnan(p), 1.0, p)


def open_to_doubt(paired: Pairs, direction: str) -> tuple[bool, bool]:
    """Whether differences known from one side only could overturn the claim, and its opposite."""
    if direction == "equal":
        positive = sum(paired.differences) >= 0
        return paired.at_least or paired.at_most, paired.at_most if positive else paired.at_least
    too_low, too_high = paired.at_least, paired.at_most  # as they are counted
    return (too_high, too_low) if direction == "higher" else (too_low, too_high)
