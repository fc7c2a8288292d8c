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
from analysis.verdicts import claims, claims_table, collapse, dials, forest, gates, sentences, summary
from analysis.verdicts.judge import judge_run
from analysis.verdicts.published import apart, beside

NAME = "verdicts"
TABLES = ("claims", "looks", "gates", "collapses", "dials", "published")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    numbers = final(table)
    history = judge_run(run, numbers)
    verdicts, looks = history[-1], claims_table.looks(history)
    rates = collapse.rates(run, numbers[numbers.seed.isin(run.seeds)])
    metrics = {verdict.id: verdict.metric for verdict in verdicts}
    return Contents(
        tables=[
            Table("claims", "Verdicts", claims.frame(verdicts), claims_table.verdicts_shown(verdicts)),
            Table("looks", "Looks taken", looks, claims_table.looks_shown(looks, metrics)),
            Table("gates", "Preconditions", gates.table(run, numbers)),
            Table("collapses", "Runs that collapsed", rates, collapse.rates_shown(rates)),
            Table("dials", "How the dials were chosen", dials.dials(run)),
            Table("published", "Published numbers and ours", published_numbers(run, numbers, made)),
        ],
        figures=[
            Plan(
                "forest",
                "Differences, paired by seed",
                f"Diamond: mean; bar: {uncertainty.called(len(run.seeds))}; dots: seeds; green ground: where "
                "the claim holds.",
                partial(forest.draw, verdicts),
                forest.alt_text(verdicts),
            )
        ],
    )


def published_numbers(run: Run, numbers: pd.DataFrame, made: Made) -> pd.DataFrame:
    """The paper's numbers and ours; side by side only where model, data and settings are the paper's."""
    both = beside(run, numbers, made)
    return both if run.scale == "paper" else apart(both)


@dataclass(frozen=True)
class Page:
    said: list[str]  # what came out, in sentences
    verdicts: list[claims.Verdict]  # of the run's scale
    elsewhere: list[claims.Verdict]  # claims of other scales
    own: dict[str, int]  # verdict -> how many claims of the recipe's paper got it
    others: dict[str, int]  # the same of other papers
    of_ours: dict[str, int]  # the same of claims that no paper makes
    tally: dict[str, int]  # of all three
    coverage: str  # how often intervals are right
    scope: str  # what they cannot say
    looks: dict[str, Any]
    gates: dict[str, Any]
    collapses: dict[str, Any]
    fallen: int  # how many runs collapsed
    dials: dict[str, Any]
    published: dict[str, Any]  # at the paper's scale both; elsewhere the paper's alone
    ours: dict[str, Any]


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    every = claims.read(folder / "claims.csv")
    here = summary.stated(run.recipe, run.scale, every)
    own, others, of_ours = claims.by_paper(here)
    metrics = {verdict.id: verdict.metric for verdict in every}
    fallen, checks = pd.read_csv(folder / "collapses.csv"), pd.read_csv(folder / "health.csv")
    theirs, ours = _split(read_text(folder / "published.csv"))
    return Page(
        said=sentences.sentences(run, numbers, checks, fallen),
        verdicts=here,
        elsewhere=[verdict for verdict in every if verdict not in here],
        own=claims.tally(own),
        others=claims.tally(others),
        of_ours=claims.tally(of_ours),
        tally=claims.tally(here),
        coverage=uncertainty.coverage(len(run.seeds)),
        scope=uncertainty.scope(run),
        looks=cells(claims_table.looks_shown(pd.read_csv(folder / "looks.csv"), metrics)),
        gates=cells(read_text(folder / "gates.csv")),
        collapses=cells(collapse.rates_shown(fallen)),
        fallen=int(fallen.collapsed.sum()),
        dials=cells(read_text(folder / "dials.csv")),
        published=cells(theirs),
        ours=cells(ours),
    )


def _split(published: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The paper's numbers, and ours where they stand apart; tables of older records have both in a row."""
    if "comparison" in published:
        published = apart(published) if not (published.comparison == "same scale").any() else published
    if "whose" not in published:
        return published, pd.DataFrame()
    theirs, ours = (published[published.whose == whose] for whose in ("paper", "here"))
    return theirs.drop(columns="whose"), ours[["what", "value"]]
