"""The way from the numbers of a run to a verdict on each claim, look by look.

verdicts.rule says what the differences of a run's seeds mean for a claim, through one interval. A run is
judged at the planned looks (encore.recipe.looks) that it has passed. The seeds after the last of these wait
for the next look. Before the first look every claim is open, and no interval decides.

A decision at a look is final: later seeds change neither the word nor its numbers, even if a gate, the
collapses, or other claims change. A claim whose arms have no further seeds stays as it was at the look that
took its last seeds.

A claim is `not tested`, with the reason and never an error, if its numbers were not run, or if its
precondition is absent (verdicts.gates).

Seeds count as independent only if their runs are independent. If two seeds share a run on a side (because a
stage is pinned to one seed), the run counts once. If all seeds share a run on one side, such as the base
model, its error enters the interval, and no number of seeds reduces this error (verdicts.pairs).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.numbers.run import Run
from analysis.statistics.intervals import TAIL, detectable
from analysis.statistics.sequential import nominal, spent
from analysis.verdicts import outlook
from analysis.verdicts.claims import NOT_TESTED, Verdict, satisfies
from analysis.verdicts.collapse import Collapses, collapses
from analysis.verdicts.evidence import Evidence, asked, evidence, sample
from analysis.verdicts.rule import OPEN, WORDS, Decision, interval, judge
from encore.errors import UserError
from encore.recipe.claims import Claim, Gate
from encore.recipe.looks import LOOKS


def judge_run(run: Run, numbers: pd.DataFrame) -> list[list[Verdict]]:
    """Return the verdicts on a run's claims at each look, as judge_looks() does; `numbers`: final numbers.

    Raises UserError if one of the run's seeds was used to choose a dial.
    """
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
    """Return, for each planned look that the seeds have reached, the verdict on each claim.

    Before the first look, there is one list of verdicts, with all seeds. `table` has the final numbers that
    the claims compare. A look takes the first of `seeds`, in their order.
    """
    every, stated = list(seeds), list(claims)
    passed = [look for look in LOOKS if look <= len(every)]
    history: list[list[Verdict]] = []
    judged: list[Evidence] = []
    decision: Decision | None = None
    for index, look in enumerate(passed or [len(every)]):
        fresh = [
            evidence(claim, table, scale, every[:look], gates or {}, collapsed or Collapses())
            for claim in stated
        ]
        before = [item.paired.seeds for item in judged] or [()] * len(stated)
        same = [bool(seeds) and item.paired.seeds == seeds for item, seeds in zip(fresh, before, strict=True)]
        frozen = [same[i] or bool(decision and decision.decided[i]) for i in range(len(stated))]
        judged = [judged[i] if frozen[i] else item for i, item in enumerate(fresh)]
        decision = judge(sample(judged, look), asked(judged), index, decision, same) if stated else None
        if decision and not passed:
            decision = _undecided(decision)
        verdicts = [
            replace(history[-1][i], asked=len(every))
            if frozen[i]
            else _verdict(item, decision, i, look if passed else None, len(every))
            for i, item in enumerate(judged)
            if decision
        ]
        history.append(verdicts)
    return history


def _undecided(decision: Decision) -> Decision:
    """Return the decision for a run that has reached no look: every claim is open, without an interval."""
    nothing = np.full(decision.low.shape, np.nan)
    word = np.full(decision.word.shape, WORDS.index(OPEN))
    return replace(decision, word=word, low=nothing, high=nothing)


def _verdict(item: Evidence, decision: Decision, i: int, look: int | None, seeds: int) -> Verdict:
    """Return the verdict on claim `i` of a decision; `look` is None if the `seeds` have reached no look."""
    claim, test, d = item.claim, item.claim.test, item.paired.differences
    n, index, level = len(d), int(decision.look[i]), float(decision.level[i])
    tail = (1 - level) / 2
    word = WORDS[int(decision.word[i])] if n else NOT_TESTED
    plain = interval(sample([item], 0), TAIL) if n > 1 else (np.array([math.nan]),) * 2
    notes, needed = [*item.paired.notes, *item.notes], None
    if word == OPEN and n > 1 and not math.isnan(tail):
        tails = [float(nominal(spent(tail, index), later)) for later in range(len(LOOKS))]
        needed = outlook.deciding_look(item, tails, look or 0)
        notes += [outlook.NEAR] if needed is None and not (item.unknown_above or item.unknown_below) else []
    against = test.against or ""
    if test.against_metric is not None:
        against = f"{against} ({test.against_metric})"
    return Verdict(
        id=claim.id,
        says=claim.says,
        source=claim.source,
        paper=claim.paper,
        family="primary" if claim.primary else "secondary",
        attempt=claim.attempt,
        metric=test.metric,
        of=test.of,
        against=against,
        direction=test.direction,
        margin=test.margin,
        smallest_effect=test.matters,
        word=word,
        estimate=float(np.median(d) if item.by_median else np.mean(d)) if n else math.nan,
        by_median=item.by_median,
        low=float(decision.low[i]),
        high=float(decision.high[i]),
        level=math.nan if math.isnan(decision.low[i]) else level,
        plain_low=float(plain[0][0]),
        plain_high=float(plain[1][0]),
        n=n,
        agree=sum(satisfies(x, test.direction, test.margin) for x in d),
        look=look if n else None,
        asked=seeds,
        needed=needed,
        detectable=math.nan if item.by_median else detectable(d, tail, error=item.paired.error),
        seeds=item.paired.seeds,
        differences=d,
        note="; ".join(notes),
    )
