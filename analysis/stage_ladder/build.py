"""The numbers of the section on stages: what each step of training brought, and what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.provenance.completions import Pair
from analysis.provenance.jobs import jobs
from analysis.stage_ladder.funnel import funnel
from analysis.stage_ladder.measures import measures
from analysis.stage_ladder.one_prompt import one_prompt
from analysis.stage_ladder.stage_cost import stage_cost
from analysis.stage_ladder.steps import Step, steps


@dataclass(frozen=True)
class StageLadder:
    """The steps of the ladder, and what is known of each."""

    steps: Sequence[Step]
    measures: pd.DataFrame
    funnel: pd.DataFrame  # without rows where no step sifts completions
    cost: pd.DataFrame  # without rows where no seed has the record of each stage
    prompts: Mapping[str, Pair]  # task -> one prompt, answered by every step


def build(run: Run, table: pd.DataFrame) -> StageLadder | None:
    """The numbers, from the tidy table; None if the recipe has no ladder, or none of it has run."""
    ladder = steps(run)
    found = measures(run, final(table), ladder)
    if not found.models.any():
        return None
    cost = run.kept("stage_cost", lambda: stage_cost(run, ladder, jobs(run)))
    return StageLadder(
        ladder,
        found,
        funnel(run, table, ladder),
        cost.fillna({"stages": ""}),
        one_prompt(run, ladder),
    )
