"""Tables of the pages that are Markdown."""

from collections.abc import Iterable, Sequence


def lines(rows: Iterable[Sequence[str]]) -> str:
    """Return a line for each row of cells; in a table the second row has the dashes under the head."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
