"""The first page of a gallery: its recipes, and of records the scoreboard, the methods and the history."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from analysis import methods, report
from analysis.gallery import history, scoreboard
from analysis.gallery.mirror import Mirror, mirror
from analysis.numbers.recorded import folders
from analysis.page.tables import Cells, cells
from analysis.verdicts import claims, records, summary, whose
from encore.recipe.graph import Graph
from encore.recipe.recipe import Recipe


@dataclass(frozen=True)
class Listed:
    """A recipe's page in the list."""

    recipe: str
    href: str
    title: str
    shows: str
    verdicts: str
    judged: str


@dataclass(frozen=True)
class Method:
    """A table of methods."""

    title: str
    record: str
    metric: str
    shared: str
    cells: Cells


@dataclass(frozen=True)
class Contents:
    """What a first page shows."""

    title: str
    lead: str
    pages: Sequence[Listed]
    notice: str = ""  # what a reader must know first
    chance: str = ""  # how many of the shown claims are expected to be false
    mirrored: Mirror | None = None  # shown claims that were tried again
    board: Sequence[scoreboard.Line] = ()
    methods: Sequence[Method] = ()
    changes: Cells = field(default_factory=lambda: cells(pd.DataFrame()))


def of_records(folder: Path, graph: Graph) -> Contents:
    """Of the records in `folder`."""
    pages = [_listed(record, graph) for record in folders(folder)]
    tables = [
        Method(table.title, table.record, table.metric, table.shared, _plain(table))
        for table in methods.compared(folder, graph)
    ]
    return Contents(
        "Published records",
        "Papers of reinforcement learning for language models, re-performed: each claim beside what came "
        "out. Models of a tenth of a million to a million parameters on procedural tasks, unless a page says "
        "otherwise.",
        pages,
        records.notice(folder, graph),
        records.of_suite(folder, graph),
        mirror(folder, graph),
        scoreboard.lines(folder, graph),
        tables,
        cells(history.changes(history.read(folder))),
    )


def of_scale(folder: Path, scale: str, graph: Graph) -> Contents:
    """Of the reports that runs at one scale have left: `folder` is results/."""
    found = []
    for name, recipe in graph.recipes.items():
        report_of = folder / name / scale / "report"
        if report_of.with_suffix(".html").exists() and (report_of / "claims.csv").exists():
            found.append(_live(report_of, recipe, scale, f"../{name}/{scale}/report.html"))
    return Contents(f"Reports at scale {scale}", "What this machine has run, a page a recipe.", found)


def render(contents: Contents) -> str:
    script = report.text("tables.js")
    papers, ours, sanity = scoreboard.groups(contents.board)
    return report.TEMPLATES.get_template("gallery.html").render(
        **vars(contents),
        tried_again=cells(contents.mirrored.table) if contents.mirrored else None,
        tally=claims.tally([*papers, *ours]),
        papers=claims.tally(papers),
        ours=claims.tally(ours),
        sanity=whose.passed(sanity),
        style=Markup(report.text("style.css")),
        scripts=[Markup(script)],
        script_hashes=report.hashes([script]),
    )


def _plain(table: methods.Compared) -> Cells:
    """The rows without the marks of Markdown."""
    rows = [tuple(cell.strip("`") for cell in row) for row in table.rows]
    return cells(pd.DataFrame(rows, columns=list(methods.COLUMNS)))


def _listed(record: Path, graph: Graph) -> Listed:
    """Of a record."""
    recipe = graph.recipes[record.name.rpartition("-")[0]]
    return _line(recipe, f"{record.name}/index.html", *records.told(record, graph))


def _live(folder: Path, recipe: Recipe, scale: str, href: str) -> Listed:
    """Of a report's folder, which has claims.csv."""
    verdicts = summary.stated(recipe, scale, claims.read(folder / "claims.csv"))
    shows = records.first_sentence(recipe.document.found) if scale == "cpu" else ""
    return _line(recipe, href, shows, whose.of_recipe(recipe, verdicts).told(), records.judged_at(verdicts))


def _line(recipe: Recipe, href: str, *said: str) -> Listed:
    return Listed(recipe.name, href, " ".join(recipe.document.title.split()), *said)
