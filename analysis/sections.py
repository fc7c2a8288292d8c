"""The sections of the page, a folder each, and what they write."""

from collections.abc import Sequence

import pandas as pd

from analysis.coverage import section as coverage
from analysis.numbers.run import Run
from analysis.page.section import Contents, Section
from analysis.preferences import section as preferences
from analysis.provenance import section as provenance
from analysis.results import section as results
from analysis.sensitivity import section as sensitivity
from analysis.stage_ladder import section as stage_ladder
from analysis.training import section as training
from analysis.verdicts import section as verdicts

# In the page's order.
SECTIONS: Sequence[Section] = (
    verdicts,
    results,
    coverage,
    sensitivity,
    stage_ladder,
    preferences,
    training,
    provenance,
)


def contents(run: Run, table: pd.DataFrame) -> dict[str, Contents]:
    """Section's name -> its tables and figures.

    Made from the last to the first: verdicts set published win rates beside those of preferences.
    """
    made: dict[str, pd.DataFrame] = {}
    by_name: dict[str, Contents] = {}
    for section in reversed(SECTIONS):
        by_name[section.NAME] = section.contents(run, table, made)
        made |= {one.name: one.numbers for one in by_name[section.NAME].tables}
    return by_name
