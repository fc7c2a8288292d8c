"""The entries of the gallery: a card for each record or report, with a square for each claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from analysis.arms.uncertainty import shares_base
from analysis.gallery import scoreboard, sketches
from analysis.gallery.scoreboard import Line
from analysis.numbers.recorded import RUNS, of_earlier_world, title
from analysis.verdicts import claims, claims_table, records, rule, summary, whose
from encore.recipe.files import REGISTERED
from encore.recipe.graph import Graph
from encore.recipe.recipe import Recipe


class Group(NamedTuple):
    """A column of a card: its name, and the claims in it."""

    name: str
    lines: list[Line]


class Meaning(NamedTuple):
    """A verdict, the sign in its square, and its meaning in words."""

    word: str
    sign: str
    means: str


SIGNS = {
    rule.SHOWN: "\N{CHECK MARK}",
    rule.SMALLER: "<",
    rule.EQUIVALENT: "=",
    rule.REVERSED: "\N{BALLOT X}",
    rule.OPEN: "?",
    claims.NOT_TESTED: "\N{EN DASH}",
}
MEANINGS = tuple(Meaning(word, SIGNS[word], means) for word, means in claims_table.MEANINGS.items())


@dataclass(frozen=True)
class Entry:
    """A card of the gallery, for a published record or for a report that was made on this machine."""

    name: str  # name of the recipe, with the scale unless it is cpu
    scale: str
    title: str
    href: str
    shows: str  # the result, in a sentence
    judged: str  # the look at which it was judged
    lines: Sequence[Line]
    # whether the claims were registered before the first run; None for a report, whose own page says it
    registered: bool | None = None
    one_base: bool | None = None  # whether all seeds share one base model; None for a report
    sketch: sketches.Sketch | None = None

    @property
    def groups(self) -> list[Group]:
        """The claims by column: papers' primary claims, papers' secondary claims, and our own claims."""
        papers, ours, _ = scoreboard.groups(self.lines)
        primary = [line for line in papers if line.family == "primary"]
        others = [line for line in papers if line.family != "primary"]
        return [
            Group("Primary claims", primary),
            Group("Secondary claims", others),
            Group("Our own claims", ours),
        ]

    @property
    def tally(self) -> dict[str, int]:
        """The number of claims, of papers and of ours together, with each verdict."""
        papers, ours, _ = scoreboard.groups(self.lines)
        return claims.tally([*papers, *ours])

    @property
    def sanity(self) -> str:
        """The number of sanity checks that hold, such as `2 of 2`; empty without sanity checks."""
        return whose.passed(scoreboard.groups(self.lines)[2])


def of_record(record: Path, graph: Graph) -> Entry:
    """Return the entry of the record in a folder."""
    name, _, scale = record.name.rpartition("-")
    recipe, run = graph.recipes[name], records.run_of(record, graph)
    shows, _, judged = records.told(record, graph)
    earlier = of_earlier_world(record, graph)
    return Entry(
        name=title(record.name),
        scale=scale,
        title=summary.title(recipe),
        href=f"{record.name}/index.html",
        shows=shows,
        judged=judged or summary.plural(records.seeds(pd.read_csv(record / RUNS)), "seed"),
        lines=[] if earlier else scoreboard.of_record(record, graph),
        registered=(record / REGISTERED).exists(),
        one_base=shares_base(run),
        sketch=None if earlier else sketches.of(record, run),
    )


def of_report(report: Path, recipe: Recipe, scale: str) -> Entry:
    """Return the entry of a report; `report` is a folder with the report's claims.csv."""
    judged = report / "claims.csv"
    return Entry(
        name=recipe.name,
        scale=scale,
        title=summary.title(recipe),
        href=f"../{recipe.name}/{scale}/report.html",
        shows=records.headline(recipe.document.found, scale),
        judged=records.judged_at(summary.stated(recipe, scale, claims.read_verdicts(judged))),
        lines=list(scoreboard.of_claims(recipe, scale, judged)),
    )
