"""Verdicts on a table of numbers, with a row for each run and metric; programs call `encore.judging`.

A table is refused, so that no number is silently left out or averaged, if a run lacks a number, if a run has
two numbers of one metric, or if there are fewer seeds than the first planned look needs. A study
(study.judge) is less strict: runs may have ended early, and are then left out with a note.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd

from analysis.study.document import StudyClaim, mistakes_of
from analysis.verdicts.claims import JudgedClaims
from analysis.verdicts.decision import judge_looks
from encore.errors import UserError, nearest
from encore.recipe.claims import Side, with_ids
from encore.recipe.looks import LOOKS

NEEDED = ("arm", "seed", "metric", "value")
FURTHER = ("node", "low", "high", "source", "step")  # columns that may be missing
RUN = ["arm", "node", "seed", "metric"]  # for each combination of these columns, a table has one number


def judge(frame: pd.DataFrame, claims: Mapping[str, StudyClaim]) -> JudgedClaims:
    """Return the verdicts on `claims`, a mapping from names to claims, from a table of numbers.

    The columns are arm, seed, metric and value; claims name arms as the column `arm` does. These columns may
    be added: `low` and `high`, the 95% interval of the number, over items and samples; `source`, the name of
    the run, if several seeds share a run, such as a base model; `node`, the checkpoint, if an arm has several
    (claims then name `arm/node`). Looks take the seeds in rising order. Raises UserError with a line for each
    mistake.
    """
    stated = _stated(claims)
    sides = {side for claim in stated for side in claim.test.sides}
    table = _numbers(frame, sides)
    if lines := [*_unusable(table), *_unpaired(table, sides)]:
        raise UserError("\n".join(f"frame: {line}" for line in lines))
    return judged(table.astype(dict.fromkeys(("value", "low", "high", "step"), float)), stated)


def judged(table: pd.DataFrame, claims: Iterable[StudyClaim]) -> JudgedClaims:
    """Return the verdicts at the last look that the seeds of a tidy table (numbers.table) have reached."""
    seeds = sorted({int(seed) for seed in table.seed})
    return JudgedClaims(judge_looks(claims, table, "", seeds)[-1])


def _stated(claims: Mapping[str, StudyClaim]) -> list[StudyClaim]:
    """Return copies of the claims with their names as ids. Raises UserError with a line for each mistake."""
    if not claims:
        raise UserError("claims: expected one or more")
    for name, claim in claims.items():
        if not isinstance(claim, StudyClaim):
            raise UserError(f"claims.{name}: expected a Claim, got {type(claim).__name__}")
    stated = [*with_ids({name: claim.model_copy() for name, claim in claims.items()}).values()]
    if lines := [f"{key}: {words}" for key, words in mistakes_of(stated)]:
        raise UserError("\n".join(lines))
    return stated


def _numbers(frame: pd.DataFrame, sides: set[Side]) -> pd.DataFrame:
    """Return the rows that the sides of claims name, with the columns NEEDED and FURTHER."""
    columns = [str(column) for column in frame.columns]
    for name in NEEDED:
        if name not in columns:
            raise UserError(f'frame: no column "{name}"{nearest(name, columns)}')
    if frame.empty:
        raise UserError("frame: no rows")
    if not frame.columns.is_unique:
        raise UserError(f'frame: column "{frame.columns[frame.columns.duplicated()][0]}" comes twice')
    table = frame.reset_index(drop=True).reindex(columns=[*NEEDED, *FURTHER])
    arms, nodes = table.arm.astype(str), table.node.astype(object).fillna("").astype(str)
    places: pd.Series[str] = arms.where(nodes == "", arms + "/" + nodes)
    parts: pd.DataFrame = places.str.partition("/")
    table = table.assign(arm=parts[0], node=parts[2])
    lines = []
    for place, metric in sorted(sides):
        if not (places == place).any():
            lines.append(f'frame: no arm "{place}"{nearest(place, sorted({*places}))}')
        elif not ((places == place) & (table.metric == metric)).any():
            metrics = sorted({str(name) for name in table.metric[places == place]})
            lines.append(f'frame: {place} has no metric "{metric}"{nearest(metric, metrics)}')
    if lines:
        raise UserError("\n".join(lines))
    asked = [(place, metric) in sides for place, metric in zip(places, table.metric, strict=True)]
    table = table[asked]
    seeds = pd.to_numeric(table.seed, errors="coerce")
    if not (seeds % 1 == 0).all():
        wrong = table.seed[~(seeds % 1 == 0)].iloc[0]
        raise UserError(f"frame: column seed: expected whole numbers, got {wrong}")
    whole = seeds.astype(int)
    runs = places[asked] + " seed " + whole.astype(str)
    return table.assign(seed=whole, source=runs.where(table.source.isna(), table.source))


def _unusable(table: pd.DataFrame) -> Iterator[str]:
    """Yield a text for each kind of mistake in the numbers, with the first row that has it."""
    values, low, high = (pd.to_numeric(table[name], errors="coerce") for name in ("value", "low", "high"))
    infinite, has_interval = ~np.isfinite(values), table.low.notna() | table.high.notna()
    one_number = "expected one number a run"
    kinds = {
        "is {value}, not a finite number: run the seed again, or leave it out of all arms": infinite,
        f"comes again: {one_number}": table.duplicated(RUN),
        "has an interval from {low} to {high}": has_interval & ~(low <= high),
        f"has the step {{step}}: {one_number}, without a step": table.step.notna(),
    }
    for words, wrong in kinds.items():
        for row in table[wrong].head(1).itertuples():
            run = f"{row.arm}{f'/{row.node}' if row.node else ''}, seed {row.seed}"
            others = f" (and {wrong.sum() - 1} more)" if wrong.sum() > 1 else ""
            said = words.format(value=row.value, low=row.low, high=row.high, step=row.step)
            yield f"{run}: {row.metric} {said}{others}"


def _unpaired(table: pd.DataFrame, sides: set[Side]) -> Iterator[str]:
    """Yield a text for each side of a claim that lacks seeds, and one if the first look needs more seeds."""
    every = {*table.seed}
    for place, metric in sorted(sides):
        arm, _, node = place.partition("/")
        measured = {*table.seed[(table.arm == arm) & (table.node == node) & (table.metric == metric)]}
        if missing := sorted(every - measured):
            seeds = ", ".join(map(str, missing))
            yield f"{place} has no {metric} for seed {seeds}: run it, or leave the seed out of all arms"
    if len(every) < LOOKS[0]:
        yield f"{len(every)} seeds: nothing is decided below {LOOKS[0]}"
