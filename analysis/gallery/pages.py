"""The page of a record, made again from the record alone, with the sections of its report."""

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

# a file that records of an earlier version lack -> what is missing on their page without it
LACKS = {
    CURVES: "learning curves",
    SHOWN: "completions and samples",
    PACKAGES: "the list of installed packages",
}

# figures whose tables a record has kept, but which its page has never shown
TABLES_ALONE = ("win-rates", "gain-by-protocol", "rejection-sampling")


def page(record: Path, graph: Graph, scratch: Path, formats: Sequence[str] = ("svg",)) -> str:
    """Return the page of a record; its figures are drawn into the folder `scratch` in these formats.

    It is made from the record's numbers; parts that need more than numbers are copied from the record.
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
