"""The numbers of a report, section by section, and the tables and figures of each section."""

from dataclasses import dataclass

import pandas as pd

from analysis.arms import build as arms
from analysis.arms import view as arms_view
from analysis.coverage import build as coverage
from analysis.coverage import view as coverage_view
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.view import View
from analysis.preferences import build as preferences
from analysis.preferences import view as preferences_view
from analysis.provenance import build as provenance
from analysis.provenance import view as provenance_view
from analysis.sensitivity import build as sensitivity
from analysis.sensitivity import view as sensitivity_view
from analysis.stage_ladder import build as stage_ladder
from analysis.stage_ladder import view as stage_ladder_view
from analysis.training import expected, objectives
from analysis.training import view as training_view
from analysis.verdicts import build as verdicts
from analysis.verdicts import published
from analysis.verdicts import view as verdicts_view


@dataclass(frozen=True)
class Results:
    """All numbers of a run, a field for each section of the page; None for sections that the recipe lacks."""

    run: Run
    table: pd.DataFrame  # the tidy table of numbers.table
    verdicts: verdicts.Verdicts
    arms: arms.Arms
    coverage: coverage.Coverage | None
    sensitivity: sensitivity.Sensitivity | None
    stage_ladder: stage_ladder.StageLadder | None
    preferences: preferences.Preferences
    objectives: pd.DataFrame  # the loss that each arm minimised
    published: pd.DataFrame  # the paper's numbers, and ours
    expected: expected.Outcome | None  # whether the run follows the recipe's expected curve
    provenance: provenance.Provenance

    @property
    def numbers(self) -> pd.DataFrame:
        """The final numbers of the run: the rows of `table` without learning curves."""
        return final(self.table)


def build(run: Run, table: pd.DataFrame) -> Results:
    """Return the numbers of every section; `table` is the tidy table of the run.

    Other numbers are read from the run's artefacts or from its record.
    """
    numbers = final(table)
    preferred = preferences.build(run, table)
    origin = provenance.build(run, preferred)
    return Results(
        run=run,
        table=table,
        verdicts=verdicts.build(run, numbers),
        arms=arms.build(run, numbers),
        coverage=coverage.build(run, numbers),
        sensitivity=sensitivity.build(run),
        stage_ladder=stage_ladder.build(run, table),
        preferences=preferred,
        objectives=objectives.optimised(run),
        published=published.build(run, numbers, preferred.tables),
        expected=expected.outcome(run, table, origin.health),
        provenance=origin,
    )


def views(results: Results) -> dict[str, View]:
    """Return each section's name in the templates -> its tables and figures, in the order of the page."""
    run, table, numbers = results.run, results.table, results.numbers
    health = results.provenance.health
    return {
        "verdicts": verdicts_view.view(run, numbers, results.verdicts, results.published, health),
        "arms": arms_view.view(run, numbers, results.arms, results.preferences.elsewhere),
        "coverage": coverage_view.view(run, numbers, results.coverage),
        "sensitivity": sensitivity_view.view(run, results.sensitivity),
        "stage_ladder": stage_ladder_view.view(run, table, results.stage_ladder),
        "preferences": preferences_view.view(run, table, results.preferences),
        "training": training_view.view(
            run, table, results.objectives, results.provenance.jobs, results.expected
        ),
        "provenance": provenance_view.view(run, results.provenance),
    }
