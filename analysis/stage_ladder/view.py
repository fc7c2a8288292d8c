"""Section "stages" of the page: the measures and the cost of each step of the ladder.

Only recipes with the key `stage_ladder` have the section.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.figures import Plan
from analysis.page.tables import Cells, Table, cells
from analysis.page.view import View
from analysis.provenance.completions import Pair
from analysis.stage_ladder import funnel, over_training
from analysis.stage_ladder.build import StageLadder
from analysis.stage_ladder.measures import by_task, measures_shown
from analysis.stage_ladder.stage_cost import stage_cost_shown
from analysis.stage_ladder.steps import Step, climb


@dataclass(frozen=True)
class TaskPage:
    """An evaluation task of the ladder's steps, as the page shows it."""

    name: str
    cells: Cells
    published: list[str]  # models and problems that the paper's numbers are about
    prompt: Pair | None


@dataclass(frozen=True)
class Page:
    """The values that the template of stages shows."""

    steps: Sequence[Step]
    tasks: list[TaskPage]
    elsewhere: bool  # whether the paper's numbers are about another model and task
    funnel: Cells
    cost: Cells


def view(run: Run, table: pd.DataFrame, result: StageLadder | None) -> View:
    """Return the section of stages; an empty section if `result` is None."""
    if result is None:
        return View([], [], None)
    sifted = Table(
        "stage_funnel", "The funnel of rejection sampling", result.funnel, funnel.funnel_shown(result.funnel)
    )
    cost = Table("stage_cost", "Cost of each step", result.cost, stage_cost_shown(result.cost))
    measures = Table(
        "stage_measures", "Every step by every measure", result.measures, measures_shown(result.measures)
    )
    tasks = [
        TaskPage(task, cells(rows), theirs, result.prompts.get(task))
        for task, rows, theirs in by_task(result.measures)
    ]
    page = Page(result.steps, tasks, run.scale != "paper", sifted.cells, cost.cells)
    tables = [measures, *(part for part in (sifted, cost) if len(part.numbers))]
    return View(tables, list(_figures(run, table, result)), page)


def _figures(run: Run, table: pd.DataFrame, result: StageLadder) -> Iterator[Plan]:
    ladder, sifted = result.steps, result.funnel
    path = climb(run, table, ladder)
    panels = over_training.panels(run, path, final(table), ladder)
    yield Plan(
        "stages-over-training",
        "Measures over training, step after step",
        over_training.caption(path, panels, ladder),
        partial(over_training.draw, path, panels, ladder),
        over_training.alt_text(panels),
    )
    yield Plan(
        "reward-by-domain",
        "Reward by domain of the prompt",
        "Of stages that train on prompts of several domains: a line a domain that has the reward, mean over "
        "seeds with their range.",
        partial(over_training.draw_by_domain, path),
        over_training.alt_text_by_domain(path),
    )
    yield Plan(
        "rejection-sampling",
        "The funnel of rejection sampling",
        "What is left of the sampled completions after each filter, mean over seeds.",
        partial(funnel.draw, sifted),
        funnel.alt_text(sifted),
    )
