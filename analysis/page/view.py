"""The tables, figures and values that a section of the page shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.page.figures import Plan
from analysis.page.tables import Table


@dataclass(frozen=True)
class View:
    """A section of the page; `page` has the values for its template, and `tables` are exported as files."""

    tables: Sequence[Table]
    figures: Sequence[Plan]
    page: object
