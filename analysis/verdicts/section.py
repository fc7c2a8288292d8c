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
from analysis.verdicts import claims, claims_table, forest
from analysis.verdicts.published import beside

NAME = "verdicts"
TABLES = ("claims", "published")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    numbers = final(table)
    verdicts = claims.judge_all(run.spec.get("claims", []), numbers, run.scale, run.seeds, run.stopped)
    return Contents(
        tables=[
            Table("claims", "Verdicts", claims.frame(verdicts), claims_table.verdicts_shown(verdicts)),
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
    published: dict[str, Any]


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    verdicts = claims.read(folder / "claims.csv")
    return Page(
        verdicts=verdicts,
        tally=claims.tally(verdicts),
        coverage=uncertainty.coverage(len(run.seeds)),
        scope=uncertainty.scope(run),
        published=cells(read_text(folder / "published.csv")),
    )
