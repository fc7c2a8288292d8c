"""The forest plot as rows of the page: a strip for each claim, grouped by primary and secondary claims.

All strips have zero at the same place, with the claimed direction on the right: if a claim says "lower", its
axis is turned. Claims have different units, so each strip has its own scale.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from analysis.verdicts.claims import Verdict
from analysis.verdicts.forest import margins_of
from encore.recipe.claims import Claim

ROOM = 6.0  # free space at each end of a strip
GROUPS = ("Primary claims", "Secondary claims", "Sanity checks of the code (no findings)")


@dataclass(frozen=True)
class Strip:
    """The positions of a claim's marks, from 0 at the left end of its strip to WIDE at the right."""

    WIDE: ClassVar[float] = 240.0
    ZERO: ClassVar[float] = 80.0  # position of a difference of zero

    holds: tuple[float, float]  # positions between which the claim holds
    small: tuple[float, float]  # positions between which a difference is too small to matter
    margins: tuple[float, ...]
    interval: tuple[float, float] | None  # the interval that decides; None if there is none
    estimate: float
    seeds: tuple[float, ...]


def strip(verdict: Verdict) -> Strip | None:
    """Return the strip of a claim; None if it was not tested."""
    if not verdict.n:
        return None
    turned = -1.0 if verdict.direction == "lower" else 1.0
    margins, small = margins_of(verdict), verdict.smallest_effect
    ends = [verdict.low, verdict.high]
    marks = [turned * mark for mark in (*verdict.differences, verdict.estimate, *margins, *ends)]
    marks = [mark for mark in (*marks, -small, small) if math.isfinite(mark)]
    scale = max(max(marks) / (Strip.WIDE - Strip.ZERO - ROOM), -min(marks) / (Strip.ZERO - ROOM)) or 1.0

    def place(difference: float) -> float:
        return min(max(Strip.ZERO + turned * difference / scale, 0.0), Strip.WIDE)

    def between(first: float, second: float) -> tuple[float, float]:
        return min(place(first), place(second)), max(place(first), place(second))

    return Strip(
        holds=between(margins[0], margins[1] if len(margins) > 1 else turned * math.inf),
        small=between(-small, small),
        margins=tuple(map(place, margins)),
        interval=None if math.isnan(verdict.low) else between(*ends),
        estimate=place(verdict.estimate),
        seeds=tuple(map(place, verdict.differences)),
    )


def grouped(verdicts: Iterable[Verdict], stated: Mapping[str, Claim]) -> dict[str, list[Verdict]]:
    """Return each group of GROUPS that is not empty -> its verdicts; `stated` has the claims by their ids."""
    groups: dict[str, list[Verdict]] = {name: [] for name in GROUPS}
    for verdict in verdicts:
        sanity, primary = stated[verdict.id].kind == "sanity", verdict.family == "primary"
        groups[GROUPS[2 if sanity else 0 if primary else 1]].append(verdict)
    return {name: group for name, group in groups.items() if group}
