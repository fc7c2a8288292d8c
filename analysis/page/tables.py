"""Tables of the page, which are exported as files and given as cells to the page's template."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from great_tables import GT

from analysis.numbers.means import DASH, MINUS

LONG = 40  # characters: a longer cell gets the width of a line of text
NUMERIC = re.compile(
    rf"(< )?[{MINUS}+]?\d[\d.,]*(e\d+)?( ?%)?( \[.*\])?"  # 0.19 [0.18, 0.20], 26.3 % [24.8, 27.8]
    rf"|\d+/\d+|(\d+ (h|min|s) ?)+|{DASH}"
)


@dataclass(frozen=True)
class Cells:
    """A table as text; numeric, long: whether all cells of a column are numbers, and whether any is long."""

    columns: list[str]
    rows: list[list[str]]
    numeric: list[bool]
    long: list[bool]


def cells(frame: pd.DataFrame) -> Cells:
    """Return a data frame as cells for the template."""
    rows = [[str(cell) for cell in row] for row in frame.itertuples(index=False)]
    columns = [str(column) for column in frame.columns]
    numeric = [bool(rows) and all(_numeric(row[i]) for row in rows) for i in range(len(columns))]
    long = [any(len(row[i]) > LONG for row in rows) for i in range(len(columns))]
    return Cells(columns, rows, numeric, long)


def _numeric(cell: str) -> bool:
    """Return whether a cell holds a number, or several numbers, as `79.8 %; 97.3 %` does."""
    return all(NUMERIC.fullmatch(part) for part in cell.split("; "))


@dataclass(frozen=True)
class Table:
    """A table for export: `numbers` for the CSV file, and `shown` for readers (default: the numbers)."""

    name: str
    title: str
    numbers: pd.DataFrame
    shown: pd.DataFrame | None = None

    @property
    def readable(self) -> pd.DataFrame:
        """The table for readers."""
        return self.numbers if self.shown is None else self.shown

    @cached_property
    def cells(self) -> Cells:
        """The table for the page's template."""
        return cells(self.readable)


SUFFIXES = (".csv", ".md", ".tex", ".html")  # endings of the files of an exported table


def remove(folder: Path, name: str) -> None:
    """Remove the files of an exported table."""
    for suffix in SUFFIXES:
        (folder / f"{name}{suffix}").unlink(missing_ok=True)


def export(folder: Path, table: Table, where: str) -> None:
    """Write <name>.csv with the numbers, and .md, .tex and .html with the table for readers.

    `where` is the end of the title for readers.
    """
    table.numbers.to_csv(folder / f"{table.name}.csv", index=False)
    title, readable = f"{table.title}. {where}", table.readable
    if not len(readable.columns):
        readable = pd.DataFrame({"": ["nothing to show"]})
    escaped = readable.map(lambda cell: str(cell).replace("|", "\\|").replace("\n", " "))
    markdown = f"**{title}**\n\n{escaped.to_markdown(index=False, disable_numparse=True)}\n"
    (folder / f"{table.name}.md").write_text(markdown, encoding="utf-8")
    styled = GT(readable, id=table.name).tab_header(title=title)
    (folder / f"{table.name}.tex").write_text(styled.as_latex(), encoding="utf-8")
    (folder / f"{table.name}.html").write_text(styled.as_raw_html(make_page=True), encoding="utf-8")
