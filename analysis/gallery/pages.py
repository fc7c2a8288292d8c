"""The page of a record: the sections of a report, made from the record alone."""

from collections.abc import Sequence
from pathlib import Path

from analysis import report
from analysis.arms import bases
from analysis.gallery import history
from analysis.numbers.recorded import CURVES, PACKAGES, with_curves
from analysis.numbers.run import SHOWN
from analysis.results import build, views
from analysis.verdicts import written
from encore.recipe.graph import Graph

# file that records of an earlier version may lack -> what their page then lacks
LACKS = {
    CURVES: "learning curves",
    SHOWN: "completions and samples",
    PACKAGES: "the list of installed packages",
}

# figures that the page of a record leaves out, although the record has their tables
TABLES_ALONE = ("win-rates", "gain-by-protocol", "rejection-sampling")


def page(record: Path, graph: Graph, scratch: Path, formats: Sequence[str] = ("svg",)) -> str:
    """Return the page of a record as HTML, and draw its figures into the folder `scratch` in these formats.

    The page is made from the record's numbers. What numbers cannot give, such as completions, is copied from
    the record.
    """
    run, table = with_curves(record, graph)
    results = build(run, table)
    shown = views(results)
    drawn = report.draw(run, shown, scratch, formats, without=TABLES_ALONE)
    lacks = [what for name, what in LACKS.items() if not (record / name).exists()]
    said = written.of_record(record), bases.others(record.parent, [record.name])
    last_run = str(results.provenance.jobs.started.max())[:10]
    known, judged = history.read_history(record.parent), results.verdicts.last
    before = history.by_an_earlier_rule(known, record.name, judged, last_run)
    recorded = report.Recorded(record.name, tuple(lacks), *said, before)
    return report.render(results, shown, drawn, recorded=recorded)
