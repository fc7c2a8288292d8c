"""From differences to verdicts.

    reproduced           the claim is shown, direction and size
    direction only       its direction is shown, and so is that its size is below what matters
    weaker than claimed  that its size is below what is claimed is shown; the other direction is not
    no difference        that |d| is below the smallest effect that matters is shown
    contradicted         the other direction is shown; of a claim of no difference, that there is one
    inconclusive         none of these

Shown means: by the tests of verdicts.statements, at a planned look (encore.recipe.looks), after the
correction for the family. As long as another look is to come, an open claim that its 95% bootstrap interval
is wholly for or against is `supported so far`, `weaker so far` or `opposed so far`. A run with another
number of seeds is judged by the planned looks that it has passed; the seeds beyond are exploratory: they
can take a decision back and add none.

What was not run is `not tested`, with the reason, never an error; and so is a claim whose precondition is
absent (verdicts.gates). Where some runs of one arm alone have collapsed (verdicts.collapse) a mean says
little about either kind of run, and nothing is decided.

Seeds count as independent only as far as their runs are. What two seeds share on a side (a stage pinned to
one seed) counts once; a run that all seeds share on one side, such as the base model, keeps its own error,
which no number of seeds lessens (verdicts.pairs).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.numbers.run import Run
from analysis.statistics.hypotheses import ALPHA, constant
from analysis.statistics.intervals import TAIL, detectable, interval, widened
from analysis.statistics.sequential import levels
from analysis.verdicts.claims import OPEN, Verdict, satisfies
from analysis.verdicts.collapse import Collapses, collapses
from analysis.verdicts.evidence import FEWEST, Evidence, evidence, open_to_doubt
from analysis.verdicts.pairs import Pairs
from analysis.verdicts.statements import adjusted, shown
from encore.errors import UserError
from encore.recipe.claims import Claim, Gate, Test
from encore.recipe.looks import LOOKS

SO_FAR = {
    "reproduced": "supported so far",
    "weaker than claimed": "weaker so far",
    "contradicted": "opposed so far",
}


def judge_run(run: Run, numbers: pd.DataFrame) -> list[list[Verdict]]:
    """judge_looks() of a run, from its final numbers. UserError where one of its seeds chose a dial."""
    claims = run.document.claims.values()
    chose = sorted(run.recipe.dial_seeds & set(run.seeds))
    if claims and chose:
        raise UserError(
            f"{run.recipe.files.file()}: dials: seed {chose[0]} was used to choose them and cannot be "
            "judged; set first_seed to one above it, or choose dials on seeds from 1000 on"
        )
    gates = run.document.gates
    return judge_looks(claims, numbers, run.scale, run.seeds, gates, collapses(run, numbers))


def judge_looks(
    claims: Iterable[Claim],
    table: pd.DataFrame,
    scale: str,
    seeds: Iterable[int],
    gates: Mapping[str, Gate] | None = None,
    collapsed: Collapses | None = None,
) -> list[list[Verdict]]:
    """Every claim's verdict at each planned look that was passed, as with its seeds alone; last, with all.

    table: the final numbers of what was asked for; seeds: in the order in which they are looked at.
    """
    asked, stated = list(seeds), list(claims)
    ends = [look for look in LOOKS if look < len(asked)] + [len(asked)]
    history: list[list[Verdict]] = []
    for end in ends:
        some = asked[:end]
        judged_by = [evidence(claim, table, scale, some, gates or {}) for claim in stated]
        verdicts = _judge(judged_by, some, collapsed or Collapses())
        history.append([_with_look(verdict, i, history) for i, verdict in enumerate(verdicts)])
    return history


def _with_look(verdict: Verdict, claim: int, earlier: list[list[Verdict]]) -> Verdict:
    """The verdict with the look that decided it: the first at which it was as it is.

    What was decided and had no new seeds since, as training was stopped for it, is left as it was.
    """
    if not verdict.n or not verdict.decided:
        return verdict
    before = [verdicts[claim] for verdicts in earlier]
    if before and before[-1].decided_at and before[-1].seeds == verdict.seeds:
        return replace(before[-1], asked=verdict.asked)
    same = next((v.decided_at for v in before if v.verdict == verdict.verdict), None)
    passed = [look for look in LOOKS if look <= verdict.asked]
    return replace(verdict, decided_at=same or passed[-1])


def _judge(claims: Sequence[Evidence], seeds: Sequence[int], collapsed: Collapses) -> list[Verdict]:
    if not claims:
        return []
    primary = [one.primary for one in claims]
    at_looks = np.stack([one.at_looks for one in claims])  # (claims, statements, looks)
    corrected = np.stack([adjusted(p, primary) for p in at_looks.swapaxes(0, 1)], axis=-1)
    sizes = {kind: sum(one.tested and one.primary == kind for one in claims) for kind in (True, False)}
    return [
        _verdict(one, p, sizes[one.primary], seeds, collapsed)
        for one, p in zip(claims, corrected, strict=True)  # p: (statements,)
    ]


def _verdict(one: Evidence, p: np.ndarray, k: int, seeds: Sequence[int], collapsed: Collapses) -> Verdict:
    claim, test, paired = one.claim, one.claim.test, one.paired
    margin, direction = test.margin, test.direction
    d, n, notes = paired.differences, len(paired.differences), list(paired.notes)
    mean = sum(d) / n if n else math.nan
    low, high = widened(*interval(d), d, paired.error) if n > 1 else (mean, mean)
    verdict = "not tested"
    if n:
        alone = collapsed.of_one_side(test, paired.seeds)
        verdict, why = _conclude(one, p, decide(low, high, direction, margin), len(seeds), alone)
        notes += [*why, *one.doubts]
        if n >= FEWEST and constant(d) and not paired.error:
            notes.append(f"all {n} differences are equal: the test is its limit")
    against = test.against or ""
    if test.against_metric is not None:
        against = f"{against} ({test.against_metric})"
    taken = int((~np.isnan(one.at_looks[0])).sum())
    waits = verdict in OPEN and not (paired.at_least or paired.at_most)
    return Verdict(
        id=claim.id,
        says=claim.says,
        source=claim.source,
        paper=claim.paper,
        family="primary" if one.primary else "secondary",
        metric=test.metric,
        of=test.of,
        against=against,
        direction=direction,
        margin=margin,
        smallest_effect=test.matters,
        n=n,
        mean=mean,
        low=low if n > 1 else math.nan,
        high=high if n > 1 else math.nan,
        p=float(one.now[0]),
        p_claim=float(p[0]),
        p_opposite=float(p[1]),
        p_direction=float(p[2]),
        p_no_difference=float(p[3]),
        p_reverse=float(p[4]),
        verdict=verdict,
        looks=taken,
        decided_at=None,
        asked=len(seeds),
        agree=sum(satisfies(x, direction, margin) for x in d),
        needed=_needed(paired, mean, test, k, len(seeds)) if waits else None,
        detectable=detectable(d, _level(k, max(taken, 1) - 1), error=paired.error),
        seeds=paired.seeds,
        differences=d,
        note="; ".join(notes),
    )


def decide(low: float, high: float, direction: str, margin: float) -> str:
    """What all of [low, high] amounts to: as claimed, weaker, the opposite; else inconclusive."""
    if direction == "lower":
        return decide(-high, -low, "higher", margin)
    if direction == "equal":
        inside, outside = -margin < low and high < margin, low >= margin or high <= -margin
    else:
        inside, outside = low > margin, high <= 0
    if inside or outside:
        return "reproduced" if inside else "contradicted"
    return "weaker than claimed" if direction == "higher" and high <= margin else "inconclusive"


def _conclude(
    one: Evidence, p: np.ndarray, by_interval: str, asked: int, alone: str
) -> tuple[str, list[str]]:
    """The verdict, and notes that say why it is not another."""
    test = one.claim.test
    claimed, refuted, direction, none, reverse = (bool(x) for x in shown(p, one.now))
    if alone:
        return "inconclusive", [alone]
    if claimed and not none:
        return "reproduced", []
    if direction and none and not refuted:
        return "direction only", ["the direction holds; the size is below the smallest effect that matters"]
    if direction and refuted:
        return "weaker than claimed", ["the direction holds"]
    if none:
        return "no difference", []
    if refuted:
        opposite = reverse or test.direction == "equal" or not test.margin
        return ("contradicted", []) if opposite else ("weaker than claimed", ["the direction is open"])
    notes = ["the direction holds; the size is open"] if direction and test.margin else []
    doubts = open_to_doubt(one.paired, test.direction)
    if by_interval in SO_FAR and doubts[by_interval != "reproduced"]:
        note = f"not {by_interval}: the differences known from one side could overturn it"
        return "inconclusive", [*notes, note]
    if LOOKS[0] < asked and asked not in LOOKS:
        notes.append(f"exploratory: {asked} seeds are no planned look")
    if asked < LOOKS[-1]:
        return SO_FAR.get(by_interval, "inconclusive"), notes
    if by_interval in SO_FAR:
        value = p[{"reproduced": 0, "weaker than claimed": 1}.get(by_interval, 1 if np.isnan(p[4]) else 4)]
        notes.append(f"{by_interval} by its interval alone; corrected for looks and claims p = {value:.2g}")
    return "inconclusive", notes


def _level(k: int, look: int) -> float:
    """Level of a look that decides one of k claims whatever the others are."""
    return min(TAIL, levels(ALPHA / max(k, 1))[look])


def _needed(paired: Pairs, mean: float, test: Test, k: int, asked: int) -> int | None:
    """The planned look to come that would decide with 80% power, were the truth as these differences are."""
    d, error = paired.differences, paired.error
    if len(d) < 2:
        return None
    margin, direction = test.margin, test.direction
    edge = {"higher": margin - mean, "lower": margin + mean, "equal": margin - abs(mean)}[direction]
    distance = max(abs(edge), test.matters - abs(mean))
    to_come = ((i, look) for i, look in enumerate(LOOKS) if look > asked)
    if distance <= 0:
        return None
    found = (n for i, n in to_come if detectable(d, _level(k, i), n=n, error=error) <= distance)
    return next(found, None)
