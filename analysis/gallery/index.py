"""The first page of a gallery: all claims as squares, a card for each recipe, and links to the rest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from analysis import methods, report
from analysis.arms import bases
from analysis.gallery import entries, history, scoreboard
from analysis.gallery.entries import Entry
from analysis.gallery.mirror import Mirror, mirror
from analysis.numbers.recorded import folders
from analysis.page.tables import Cells, cells
from analysis.verdicts import claims, records, rule, whose
from encore.recipe.graph import Graph

SCRIPTS = ("tables.js", "gallery.js")
EXAMPLES = 3  # number of findings that stand in words above the squares


@dataclass(frozen=True)
class Method:
    """A table that compares methods, with the fields of methods.Compared; its rows are cells."""

    title: str
    record: str
    metric: str
    shared: str
    cells: Cells


@dataclass(frozen=True)
class Paper:
    """A paper by which a reader can filter claims, and the names of the recipes that reproduce it."""

    name: str
    recipes: Sequence[str]


@dataclass(frozen=True)
class Contents:
    """The contents of the first page of a gallery."""

    title: str
    lead: str
    entries: Sequence[Entry]
    papers: Sequence[Paper] = ()
    chance: str = ""  # sentence on how many of the shown claims are expected to be false
    elsewhere: str = ""  # sentences on the claims' results with other base models
    mirrored: Mirror | None = None  # claims that were shown, and tried again in a second world
    methods: Sequence[Method] = ()
    changes: Cells = field(default_factory=lambda: cells(pd.DataFrame()))


def of_records(folder: Path, graph: Graph) -> Contents:
    """Return the contents of the first page of all records in `folder`."""
    recorded = folders(folder)
    listed = [entries.of_record(record, graph) for record in recorded]
    shared = [record.name for record, entry in zip(recorded, listed, strict=True) if entry.one_base]
    tables = [
        Method(table.title, table.record, table.metric, table.shared, _plain(table))
        for table in methods.compared(folder, graph)
    ]
    return Contents(
        title="Claims about RL for language models, tested anew",
        lead="Papers on RL, re-performed on small models: a square is a claim, its colour what came out.",
        entries=listed,
        papers=_papers(listed, graph),
        chance=records.of_suite(folder, graph),
        elsewhere=bases.others(folder, shared),
        mirrored=mirror(folder, graph),
        methods=tables,
        changes=cells(history.changes(history.read_history(folder))),
    )


def of_scale(folder: Path, scale: str, graph: Graph) -> Contents:
    """Return the contents of the first page of all reports at a scale; `folder` is results/."""
    listed = []
    for name, recipe in graph.recipes.items():
        report_of = folder / name / scale / "report"
        if report_of.with_suffix(".html").exists() and (report_of / "claims.csv").exists():
            listed.append(entries.of_report(report_of, recipe, scale))
    lead = "What this machine has run: each square is one claim, and its colour is what came out."
    return Contents(f"Reports at scale {scale}", lead, listed, _papers(listed, graph))


def render(contents: Contents) -> str:
    """Return the first page as HTML."""
    scripts = [report.text(name) for name in SCRIPTS]
    papers, ours, sanity = scoreboard.groups([line for entry in contents.entries for line in entry.lines])
    return report.TEMPLATES.get_template("gallery.html").render(
        **vars(contents),
        lines=[*papers, *ours, *sanity],
        meanings=entries.MEANINGS,
        signs={meaning.word: meaning.sign for meaning in entries.MEANINGS},
        tried_again=cells(contents.mirrored.table) if contents.mirrored else None,
        tally=claims.tally([*papers, *ours]),
        examples=_examples(contents.entries),
        of_papers=len(papers),
        of_ours=len(ours),
        sanity=whose.passed(sanity),
        style=Markup(report.text("style.css") + report.text("gallery.css")),
        scripts=list(map(Markup, scripts)),
        script_hashes=report.hashes(scripts),
    )


def _examples(listed: Sequence[Entry]) -> list[Entry]:
    """Return the registered records with the most decided primary claims, at most EXAMPLES of them."""
    counts = {
        entry.name: sum(
            line.family == "primary" and line.word not in (rule.OPEN, claims.NOT_TESTED)
            for line in entry.lines
        )
        for entry in listed
    }
    known = [entry for entry in listed if entry.registered and entry.shows and counts[entry.name]]
    return sorted(known, key=lambda entry: -counts[entry.name])[:EXAMPLES]


def _papers(listed: Iterable[Entry], graph: Graph) -> list[Paper]:
    """Return the papers with claims in the entries `listed`, sorted by name."""
    names = sorted({line.paper for entry in listed for line in entry.lines})
    recipes: dict[str, list[str]] = {name: [] for name in names}
    for name, recipe in graph.recipes.items():
        recipes.get(scoreboard.label(recipe.document.url), []).append(name)
    return [Paper(name, recipes[name]) for name in names]


def _plain(table: methods.Compared) -> Cells:
    """Return the cells of a table of methods, without the backticks of Markdown."""
    rows = [tuple(cell.strip("`") for cell in row) for row in table.rows]
    return cells(pd.DataFrame(rows, columns=list(methods.COLUMNS)))
