"""Section "verdicts" of the page: the paper's claims, judged by this run, and its published numbers."""

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
    one_seed,
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

    said: list[str]  # the outcome, in sentences
    by_median: bool  # whether the median decides any claim, because runs of only one of its sides collapsed
    notice: str  # notice of collapses and of arms with warnings; empty if nothing broke
    broken: str  # the same notice in full
    groups: Mapping[str, list[Verdict]]  # kind of claim -> the verdicts at the run's scale
    strips: Mapping[str, strips.Strip | None]  # id of a claim -> its row in the plot
    over_problems: Mapping[str, one_seed.Difference]  # with one seed: id of a claim -> its difference
    meanings: Mapping[str, str]  # word of a verdict -> what the word means
    elsewhere: list[Verdict]  # claims at other scales
    stated: Mapping[str, Claim]  # the recipe's claims by their ids
    causes: Mapping[str, str]  # id of a reversed claim -> what in our world may cause the reversal
    own: dict[str, int]  # word -> number of claims of the recipe's paper with this verdict
    others: dict[str, int]  # the same numbers for other papers
    of_ours: dict[str, int]  # the same numbers for claims that no paper makes
    sanity: str  # text on how many sanity checks of the code hold
    scope: str  # sentence on what intervals cannot say
    looks: Cells
    gates: Cells
    collapses: Cells
    fallen: int  # number of collapsed runs
    dials: Cells
    published: Cells  # the paper's numbers: beside ours at the paper's scale, alone at other scales
    ours: Cells


def view(
    run: Run, numbers: pd.DataFrame, judged: Verdicts, published: pd.DataFrame, health: pd.DataFrame
) -> View:
    """Return the section of verdicts.

    `published` is a table of verdicts.published.build(), and `health` of provenance.health.worst().
    """
    looks, gates, collapses, dials = tables(judged)[1:]
    verdicts = summary.stated(run.recipe, run.scale, judged.last)
    words = {verdict.word for verdict in verdicts}
    groups = whose.of_recipe(run.recipe, verdicts)
    theirs, ours = _split(published)
    page = Page(
        said=sentences.sentences(run, numbers),
        by_median=any(verdict.by_median for verdict in verdicts),
        notice=sentences.notice(health, judged.collapses),
        broken=sentences.broken(run, health, judged.collapses),
        groups=strips.grouped(verdicts, run.document.claims),
        strips={verdict.id: strips.strip(verdict) for verdict in verdicts},
        over_problems=judged.over_problems,
        meanings={word: means for word, means in claims_table.MEANINGS.items() if word in words},
        elsewhere=[verdict for verdict in judged.last if verdict not in verdicts],
        stated=run.document.claims,
        causes=reversals.causes(run.recipe, verdicts),
        own=claims.tally(groups.own),
        others=claims.tally(groups.others),
        of_ours=claims.tally(groups.ours),
        sanity=whose.passed(groups.sanity),
        scope=uncertainty.scope(run),
        looks=looks.cells,
        gates=gates.cells,
        collapses=collapses.cells,
        fallen=int(judged.collapses.collapsed.sum()),
        dials=dials.cells,
        published=cells(theirs),
        ours=cells(ours),
    )
    figure = Plan(
        "forest",
        "Differences, paired by seed",
        "Diamond: mean, or median where runs of one side alone collapsed; bar: the interval that decides; "
        "dots: seeds; green ground: where the claim holds.",
        partial(forest.draw, judged.last),
        forest.alt_text(judged.last),
    )
    return View(
        [*tables(judged), Table("published", "Published numbers and ours", published)], [figure], page
    )


def tables(judged: Verdicts) -> list[Table]:
    """Return the tables of verdicts: claims, looks, gates, collapses, dials."""
    looks, metrics = claims_table.looks(judged.history), {v.id: v.metric for v in judged.last}
    return [
        Table("claims", "Verdicts", claims.frame(judged.last), claims_table.verdicts_shown(judged.last)),
        Table("looks", "Looks taken", looks, claims_table.looks_shown(looks, metrics)),
        Table("gates", "Preconditions", judged.gates),
        Table("collapses", "Runs that collapsed", judged.collapses, collapse.rates_shown(judged.collapses)),
        Table("dials", "How the dials were chosen", judged.dials),
    ]


def _split(published: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table of the paper's numbers and the table of ours, empty if both are in one table."""
    if "whose" not in published:
        return published, pd.DataFrame()
    theirs, ours = (published[published.whose == party] for party in ("paper", "here"))
    return theirs.drop(columns="whose"), ours[["what", "value"]]
