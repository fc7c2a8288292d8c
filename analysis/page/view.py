"""The tables, figures and values that a section of the page shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.page.figures import Plan
from analysis.page.tables import Table


@dataclass(frozen=True)
class View:
    """A section's tables, which are exported, its figures in their order, and what its template reads."""

    tables: Sequence[Table]
    figures: Sequence[Plan]
    page: object
