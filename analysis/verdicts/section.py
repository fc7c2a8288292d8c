"""Verdicts: what the paper says, held to this run; and its published numbers beside ours."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.figures import Plan
from analysis.page.section import Contents, Made
from analysis.page.tables import Table, cells, read_text
from analysis.results import uncertainty
from analysis.verdicts import claims, claims_table, collapse, dials, forest, gates
from analysis.verdicts.judge import judge_run
from analysis.verdicts.published import beside

NAME = "verdicts"
TABLES = ("claims", "looks", "gates", "collapses", "dials", "published")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    numbers = final(table)
    history = judge_run(run, numbers)
    verdicts, looks, rates = history[-1], claims_table.looks(history), collapse.rates(run, numbers)
    metrics = {verdict.id: verdict.metric for verdict in verdicts}
    return Contents(
        tables=[
            Table("claims", "Verdicts", claims.frame(verdicts), claims_table.verdicts_shown(verdicts)),
            Table("looks", "Looks taken", looks, claims_table.looks_shown(looks, metrics)),
            Table("gates", "Preconditions", gates.table(run, numbers)),
            Table("collapses", "Runs that collapsed", rates, collapse.rates_shown(rates)),
            Table("dials", "How the dials were chosen", dials.dials(run)),
            Table("published", "Published numbers beside ours", beside(run, numbers, made)),
        ],
        figures=[
            Plan(
                "forest",
                "Differences, paired by seed",
                "Diamond: mean; bar: 95% interval; dots: seeds; green ground: where the claim holds.",
                partial(forest.draw, verdicts),
                forest.alt_text(verdicts),
            )
        ],
    )


@dataclass(frozen=True)
class Page:
    verdicts: list[claims.Verdict]
    tally: dict[str, int]  # verdict -> how many claims got it
    coverage: str  # how often intervals are right
    scope: str  # what they cannot say
    looks: dict[str, Any]
    gates: dict[str, Any]
    collapses: dict[str, Any]
    dials: dict[str, Any]
    published: dict[str, Any]


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    verdicts = claims.read(folder / "claims.csv")
    metrics = {verdict.id: verdict.metric for verdict in verdicts}
    return Page(
        verdicts=verdicts,
        tally=claims.tally(verdicts),
        coverage=uncertainty.coverage(len(run.seeds)),
        scope=uncertainty.scope(run),
        looks=cells(claims_table.looks_shown(pd.read_csv(folder / "looks.csv"), metrics)),
        gates=cells(read_text(folder / "gates.csv")),
        collapses=cells(collapse.rates_shown(pd.read_csv(folder / "collapses.csv"))),
        dials=cells(read_text(folder / "dials.csv")),
        published=cells(read_text(folder / "published.csv")),
    )
