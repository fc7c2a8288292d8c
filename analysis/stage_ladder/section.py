"""The ladder of stages: what each step of training brought, and what it cost.

For a recipe with `stage_ladder`; any other has no such section.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.figures import Plan
from analysis.page.section import Contents, Made
from analysis.page.section import shown as shown_before
from analysis.page.tables import Table, cells
from analysis.provenance.jobs import jobs
from analysis.stage_ladder import funnel, over_training
from analysis.stage_ladder.measures import by_task, measures, measures_shown
from analysis.stage_ladder.one_prompt import one_prompt
from analysis.stage_ladder.segments import climb
from analysis.stage_ladder.stage_cost import stage_cost, stage_cost_shown
from analysis.stage_ladder.steps import Step, steps

NAME = "stage_ladder"
TABLES = ("stage_measures", "stage_funnel", "stage_cost")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    ladder, numbers = steps(run), final(table)
    found = measures(run, numbers, ladder)
    if not found.models.any():
        return Contents([])
    sifted, spent = funnel.funnel(run, ladder), stage_cost(run, ladder, jobs(run))
    tables = [
        Table("stage_measures", "Every step by every measure", found, measures_shown(found)),
        Table("stage_funnel", "The funnel of rejection sampling", sifted, funnel.funnel_shown(sifted)),
        Table("stage_cost", "Cost of each step", spent, stage_cost_shown(spent)),
    ]
    there = [one for one in tables if len(one.numbers)]
    prompts = one_prompt(run, ladder)
    return Contents(there, list(_figures(run, table, numbers, ladder, sifted)), {"prompts": prompts})


def _figures(
    run: Run, table: pd.DataFrame, numbers: pd.DataFrame, ladder: Sequence[Step], sifted: pd.DataFrame
) -> Iterator[Plan]:
    path = climb(run, table, ladder)
    panels = over_training.panels(run, path, numbers, ladder)
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


@dataclass(frozen=True)
class Page:
    steps: list[Step]
    tasks: list[dict[str, Any]]  # of each: name, cells, the paper's numbers, one prompt; empty: no section
    elsewhere: bool  # the paper's numbers are of another model and task
    funnel: dict[str, Any] | None
    cost: dict[str, Any] | None


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    texts = {"published": str, "what": str, "source": str}
    found = _read(folder, "stage_measures", texts)
    sifted, spent = _read(folder, "stage_funnel"), _read(folder, "stage_cost")
    ladder = steps(run)
    prompts = shown_before(folder, NAME).get("prompts", {})
    shown = [] if found is None else by_task(found.fillna(dict.fromkeys(texts, "")))
    return Page(
        steps=ladder,
        tasks=[
            {"name": task, "cells": cells(rows), "published": theirs, "prompt": prompts.get(task)}
            for task, rows, theirs in shown
        ],
        elsewhere=run.scale != "paper",
        funnel=None if sifted is None else cells(funnel.funnel_shown(sifted)),
        cost=None if spent is None else cells(stage_cost_shown(spent.fillna({"stages": ""}))),
    )


def _read(folder: Path, name: str, texts: dict[str, Any] | None = None) -> pd.DataFrame | None:
    """A table of this section, if analyse wrote it; `texts`: the types of its columns of text."""
    path = folder / f"{name}.csv"
    return pd.read_csv(path, dtype=texts) if path.exists() else None
