"""A record's page, made again from the record alone, with the sections of the report it was taken from."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from analysis import analyse, report
from analysis.numbers.recorded import CURVES, with_curves
from analysis.page.section import SHOWN
from analysis.provenance.jobs import FILE
from analysis.provenance.kept import PACKAGES
from analysis.results import bases
from analysis.sections import SECTIONS
from analysis.verdicts import written
from encore.recipe.graph import Graph

TABLES = tuple(f"{name}.csv" for section in SECTIONS for name in section.TABLES)
# a file that records of an earlier version lack -> what their page lacks for it
LACKS = {
    CURVES: "learning curves",
    SHOWN: "completions and samples",
    PACKAGES: "the list of installed packages",
}


def page(record: Path, graph: Graph, scratch: Path, formats: Sequence[str] = ("svg",)) -> str:
    """The page of a record; `scratch` is an empty folder for its tables, and its figures in these formats.

    Figures are drawn from the record's numbers; tables that take more than those are the record's own.
    """
    run, table = with_curves(record, graph)
    analyse.write(run, table, scratch, formats)
    for name in (*TABLES, SHOWN, FILE):
        if (record / name).exists():
            shutil.copyfile(record / name, scratch / name)
    lacks = [what for name, what in LACKS.items() if not (record / name).exists()]
    said = written.of_record(record), bases.others(record.parent, record.name)
    return report.render(run, scratch, recorded=report.Recorded(record.name, tuple(lacks), *said))
