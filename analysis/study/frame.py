"""Verdicts on a table of numbers, with a row for each run and metric; programs call `encore.judging`.

Tables that cannot be judged as they are, are refused, so that no number is averaged away silently: a run
without a number, two numbers of one run, and fewer seeds than the first planned look needs. A study
(study.judge) reads logs, in which runs may have ended early; it names those in notes, and judges the others.
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
RUN = ["arm", "node", "seed", "metric"]  # columns for which a table has only one number


def judge(frame: pd.DataFrame, claims: Mapping[str, StudyClaim]) -> JudgedClaims:
    """Return the verdicts on claims, by their names, from a table with the columns arm, seed, metric, value.

    A claim names arms as the column `arm` does. There may be further columns. `low` and `high` are the 95%
    interval of a number by itself, over items and samples. `source` says which run the number is of, if
    several seeds share one, such as a base model. `node` is the place of measurement, if an arm has several;
    claims then name `arm/node`. Seeds are looked at in rising order. Raises UserError with a line for each
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
    """Return copies of the claims that know their names: one claim may be used in several mappings."""
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
    """Return the rows that the sides of claims need, with the columns of the tidy table."""
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
    """Yield what is wrong with the numbers themselves; each kind of mistake comes once."""
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
    """Yield the sides of claims that lack seeds, and a mistake if a look needs more seeds."""
    every = {*table.seed}
    for place, metric in sorted(sides):
        arm, _, node = place.partition("/")
        measured = {*table.seed[(table.arm == arm) & (table.node == node) & (table.metric == metric)]}
        if missing := sorted(every - measured):
            seeds = ", ".join(map(str, missing))
            yield f"{place} has no {metric} for seed {seeds}: run it, or leave the seed out of all arms"
    if len(every) < LOOKS[0]:
        yield f"{len(every)} seeds: nothing is decided below {LOOKS[0]}"
