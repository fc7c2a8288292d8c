"""Tables of the page: as files, and as cells of the template."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from great_tables import GT

from analysis.numbers.means import DASH, MINUS

SUFFIXES = ("csv", "md", "tex", "html")
LONG = 40  # characters from which a cell gets room for a line of text
NUMERIC = re.compile(
    rf"(< )?[{MINUS}+]?\d[\d.,]*(e\d+)?( ?%)?( \[.*\])?"  # 0.19 [0.18, 0.20], 26.3 % [24.8, 27.8]
    rf"|\d+/\d+|(\d+ (h|min|s) ?)+|{DASH}"
)


@dataclass(frozen=True)
class Table:
    """One table: its numbers, and the same as a reader wants them (default: the numbers)."""

    name: str
    title: str
    numbers: pd.DataFrame
    shown: pd.DataFrame | None = None


def write_all(folder: Path, names: Iterable[str], tables: Iterable[Table], where: str) -> None:
    """Write a section's tables; of its `names`, remove the files of a table that is not there any more."""
    gone = set(names)
    for table in tables:
        write(folder, table, where)
        gone.discard(table.name)
    for name in gone:
        for suffix in SUFFIXES:
            (folder / f"{name}.{suffix}").unlink(missing_ok=True)


def write(folder: Path, table: Table, where: str) -> None:
    """<name>.csv with the numbers; .md, .tex and .html for readers, titled with `where` they are from."""
    table.numbers.to_csv(folder / f"{table.name}.csv", index=False)
    title = f"{table.title}. {where}"
    readable = table.numbers if table.shown is None else table.shown
    if not len(readable.columns):
        readable = pd.DataFrame({"": ["nothing to show"]})
    escaped = readable.map(lambda cell: str(cell).replace("|", "\\|").replace("\n", " "))
    markdown = f"**{title}**\n\n{escaped.to_markdown(index=False, disable_numparse=True)}\n"
    (folder / f"{table.name}.md").write_text(markdown, encoding="utf-8")
    styled = GT(readable, id=table.name).tab_header(title=title)
    (folder / f"{table.name}.tex").write_text(styled.as_latex(), encoding="utf-8")
    (folder / f"{table.name}.html").write_text(styled.as_raw_html(make_page=True), encoding="utf-8")


def read_text(path: Path) -> pd.DataFrame:
    """A written table whose cells are all text; empty where it has no columns or was not written."""
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (FileNotFoundError, pd.errors.EmptyDataError):
        return pd.DataFrame()


def cells(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame for the template: columns, rows of text, which columns are numbers, which hold long text."""
    rows = [[str(cell) for cell in row] for row in frame.itertuples(index=False)]
    columns = [str(column) for column in frame.columns]
    numeric = [bool(rows) and all(_numeric(row[i]) for row in rows) for i in range(len(columns))]
    long = [any(len(row[i]) > LONG for row in rows) for i in range(len(columns))]
    return {"columns": columns, "rows": rows, "numeric": numeric, "long": long}


def _numeric(cell: str) -> bool:
    """Whether a cell is a number, or several: `79.8 %; 97.3 %`."""
    return all(NUMERIC.fullmatch(part) for part in cell.split("; "))
