"""The interface of a section of the page, which is its folder's section.py."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from analysis.numbers.run import Run
from analysis.page.figures import Plan
from analysis.page.tables import Table

SHOWN = "shown.json"  # in the folder of an analysis: section -> what it shows beside its tables
Made = Mapping[str, pd.DataFrame]  # table's name -> its numbers


@dataclass(frozen=True)
class Contents:
    """A section's tables, and the figures that there may be data for, in the page's order.

    `shown` is what else it shows, fit for JSON: the page reads it again, as it does the tables.
    """

    tables: Sequence[Table]
    figures: Sequence[Plan] = ()
    shown: Mapping[str, Any] = field(default_factory=dict)


def shown(folder: Path, section: str) -> dict[str, Any]:
    """What analyse kept of a section beside its tables; empty where it kept nothing."""
    path = folder / SHOWN
    return json.loads(path.read_text(encoding="utf-8")).get(section, {}) if path.exists() else {}


class Section(Protocol):
    """What analyse, report and publish ask of a section."""

    NAME: str

    @property
    def TABLES(self) -> tuple[str, ...]:
        """The names of all tables that it may write."""

    def contents(self, run: Run, table: pd.DataFrame, made: Made) -> Contents:
        """Its tables and figures, from the tidy table and what sections below it on the page have made."""

    def page(self, run: Run, numbers: pd.DataFrame, folder: Path) -> object:
        """What its template shows: from the final numbers and the tables that analyse wrote to `folder`."""
