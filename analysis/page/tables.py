"""Tables as files: CSV, Markdown and LaTeX."""

from pathlib import Path

import pandas as pd
from great_tables import GT


def write(
    folder: Path, name: str, title: str, frame: pd.DataFrame, readable: pd.DataFrame | None = None
) -> None:
    """<name>.csv with the numbers; .md, .tex and .html for readers."""
    readable = frame if readable is None else readable
    frame.to_csv(folder / f"{name}.csv", index=False)
    if not len(readable.columns):
        readable = pd.DataFrame({"": ["nothing to show"]})
    cells = readable.map(lambda cell: str(cell).replace("|", "\\|").replace("\n", " "))
    markdown = f"**{title}**\n\n{cells.to_markdown(index=False, disable_numparse=True)}\n"
    (folder / f"{name}.md").write_text(markdown, encoding="utf-8")
    styled = GT(readable, id=name).tab_header(title=title)
    (folder / f"{name}.tex").write_text(styled.as_latex(), encoding="utf-8")
    (folder / f"{name}.html").write_text(styled.as_raw_html(make_page=True), encoding="utf-8")
