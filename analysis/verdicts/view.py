"""Verdicts on the page: what the paper says, held to this run; and its published numbers beside ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd

from analysis.arms import uncertainty
from analysis.numbers.run import Run
from analysis.page.figures import Plan
from analysis.page.tables import Cells, Table, cells
from analysis.page.view import View
from analysis.verdicts import (
    claims,
    claims_table,
    collapse,
    forest,
    reversals,
    sentences,
    strips,
    summary,
    whose,
)
from analysis.verdicts.build import Verdicts
from analysis.verdicts.claims import Verdict
from encore.recipe.claims import Claim


@dataclass(frozen=True)
class Page:
    """The values that the template of verdicts shows."""

    said: list[str]  # what came out, in sentences
    notice: str  # what collapsed, and how many arms health checks warn of; empty if nothing broke
    broken: str  # the same in full
    groups: Mapping[str, list[Verdict]]  # of the run's scale, by what the claims are
    strips: Mapping[str, strips.Strip | None]  # by the ids of claims
    meanings: Mapping[str, str]  # of the words of verdicts
    elsewhere: list[Verdict]  # claims of other scales
    stated: Mapping[str, Claim]  # the recipe's claims by their ids
    causes: Mapping[str, str]  # id of a claim that came out reversed -> what in our world may cause it
    own: dict[str, int]  # word -> how many claims of the recipe's paper got it
    others: dict[str, int]  # the same of other papers
    of_ours: dict[str, int]  # the same of claims that no paper makes
    sanity: str  # how many sanity checks of the code hold, of how many
    scope: str  # what intervals cannot say
    looks: Cells
    gates: Cells
    collapses: Cells
    fallen: int  # how many runs collapsed
    dials: Cells
    published: Cells  # at the paper's scale ours too; elsewhere the paper's alone
    ours: Cells


def view(
    run: Run, numbers: pd.DataFrame, found: Verdicts, published: pd.DataFrame, health: pd.DataFrame
) -> View:
    """The section; published: verdicts.published.build(), health: provenance.health.worst()."""
    looks, gates, collapses, dials = tables(found)[1:]
    here = summary.stated(run.recipe, run.scale, found.last)
    groups = whose.of_recipe(run.recipe, here)
    theirs, ours = _split(published)
    page = Page(
        said=sentences.sentences(run, numbers),
        notice=sentences.notice(health, found.collapses),
        broken=sentences.broken(run, health, found.collapses),
        groups=strips.grouped(here, run.document.claims),
        strips={verdict.id: strips.strip(verdict) for verdict in here},
        meanings=claims_table.MEANINGS,
        elsewhere=[verdict for verdict in found.last if verdict not in here],
        stated=run.document.claims,
        causes=reversals.causes(run.recipe, here),
        own=claims.tally(groups.own),
        others=claims.tally(groups.others),
        of_ours=claims.tally(groups.ours),
        sanity=whose.passed(groups.sanity),
        scope=uncertainty.scope(run),
        looks=looks.cells,
        gates=gates.cells,
        collapses=collapses.cells,
        fallen=int(found.collapses.collapsed.sum()),
        dials=dials.cells,
        published=cells(theirs),
        ours=cells(ours),
    )
    figure = Plan(
        "forest",
        "Differences, paired by seed",
        "Diamond: mean, or median where runs of one side alone collapsed; bar: the interval that decides; "
        "dots: seeds; green ground: where the claim holds.",
        partial(forest.draw, found.last),
        forest.alt_text(found.last),
    )
    return View([*tables(found), Table("published", "Published numbers and ours", published)], [figure], page)


def tables(found: Verdicts) -> list[Table]:
    """The tables of verdicts: claims, looks, gates, collapses, dials."""
    looks, metrics = claims_table.looks(found.history), {v.id: v.metric for v in found.last}
    return [
        Table("claims", "Verdicts", claims.frame(found.last), claims_table.verdicts_shown(found.last)),
        Table("looks", "Looks taken", looks, claims_table.looks_shown(looks, metrics)),
        Table("gates", "Preconditions", found.gates),
        Table("collapses", "Runs that collapsed", found.collapses, collapse.rates_shown(found.collapses)),
        Table("dials", "How the dials were chosen", found.dials),
    ]


def _split(published: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The paper's numbers, and ours where they stand apart."""
    if "whose" not in published:
        return published, pd.DataFrame()
    theirs, ours = (published[published.whose == whose] for whose in ("paper", "here"))
    return theirs.drop(columns="whose"), ours[["what", "value"]]
