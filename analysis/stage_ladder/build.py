"""The numbers of section "stages": the measures and the cost of each step of the ladder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from pydantic import TypeAdapter

from analysis.numbers.run import Row, Run
from analysis.numbers.table import final
from analysis.provenance.completions import Pair, first_samples, pair
from analysis.provenance.jobs import jobs
from analysis.stage_ladder.funnel import funnel
from analysis.stage_ladder.measures import measures
from analysis.stage_ladder.stage_cost import stage_cost
from analysis.stage_ladder.steps import Step, evaluated, steps


@dataclass(frozen=True)
class StageLadder:
    """The steps of the recipe's `stage_ladder`, and the numbers of each."""

    steps: Sequence[Step]
    measures: pd.DataFrame
    funnel: pd.DataFrame  # no rows if no step filters completions
    cost: pd.DataFrame  # no rows if the cost of no step is known
    prompts: Mapping[str, Pair]  # task -> one prompt, answered by every step


def build(run: Run, table: pd.DataFrame) -> StageLadder | None:
    """Return the numbers of the ladder, from the tidy table; None without a ladder or if no step has run."""
    ladder = steps(run)
    measured = measures(run, final(table), ladder)
    if not measured.models.any():
        return None
    cost = run.kept("stage_cost", lambda: stage_cost(run, ladder, jobs(run)))
    return StageLadder(
        ladder,
        measured,
        funnel(run, table, ladder),
        cost.fillna({"stages": ""}),
        one_prompt(run, ladder),
    )


def one_prompt(run: Run, ladder: Sequence[Step]) -> dict[str, Pair]:
    """Return task -> the problem on which the steps disagree most, with the first sample of each step.

    The samples are from the first seed; steps without samples on disk are left out, and tasks that only one
    step has. See disagreement(); of equal problems, the first is taken. A record has the chosen problems.
    """
    if run.record:
        kept = run.samples_kept("stage_ladder").get("prompts", {})
        return TypeAdapter(dict[str, Pair]).validate_python(kept)
    read = {step.name: first_samples(run, step.arm, step.checkpoint) for step in ladder}
    chosen = {}
    for task in evaluated(run, ladder):
        sides = {name: by_task[task] for name, by_task in read.items() if task in by_task}
        items = next(iter(sides.values()), {})
        shared = [item for item in items if all(item in rows for rows in sides.values())]
        if len(sides) > 1 and shared:
            by_item = [[rows[item] for rows in sides.values()] for item in shared]
            chosen[task] = pair(list(sides), max(by_item, key=disagreement))
    return chosen


def disagreement(rows: Sequence[Row]) -> tuple[int, float]:
    """Return a sort key for how much the first samples of one problem, one from each step, differ.

    It is the number of pairs of a right and a wrong sample and, for ties, the range of the gold reward.
    """
    right = [row["correct"][0] for row in rows]
    gold = [row["gold"][0] for row in rows if row.get("gold")]
    return right.count(True) * right.count(False), max(gold, default=0.0) - min(gold, default=0.0)
