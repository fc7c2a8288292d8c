"""Preferences: policies against each other, reward against divergence, reward models and labels.

Each table and figure is there only where the run has data for it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.figures import Plan
from analysis.page.section import Contents, Made
from analysis.page.style import colours
from analysis.page.tables import Table, cells
from analysis.preferences import (
    alignment_tax,
    frontier,
    labels,
    length_control,
    over_optimization,
    replies,
    reward_models,
    sweeps,
    win_rates,
)
from analysis.preferences.contenders import Contender, asked_tasks, baseline, contenders, judged_task, proxies
from analysis.preferences.reward_fits import ALPHA, BETA, WRITTEN

NAME = "preferences"
BY_TASK = ("win_rates_by_task", "alignment_tax")  # tables that have a column `task`


@dataclass(frozen=True)
class Kind:
    """A table of this section: its file's name, what stands above it, and its form for a reader."""

    name: str
    title: str
    caption: str
    shown: Callable[[pd.DataFrame], pd.DataFrame]


KINDS = (
    Kind(
        "win_rates",
        "Win rates by gold",
        "How often a reply of the row has more gold reward than one of the column to the same prompt, ties "
        "half. Interval: items and seeds drawn again, in pairs. Of more than "
        f"{replies.MOST} policies {replies.MOST} are shown, one of each kind first.",
        win_rates.matrix_shown,
    ),
    Kind(
        "length_controlled",
        "Win rates at equal length",
        "Against {against}: as it is, and as a logistic model in the difference of lengths says it would be "
        "if replies were equally long (AlpacaEval's length-controlled win rate). A rate that falls there was "
        "partly bought with length; where the lengths of the two hardly overlap, it is an extrapolation.",
        length_control.against_shown,
    ),
    Kind(
        "win_rates_by_task",
        "Win rates against the reference replies, by task",
        "Tasks differ in temperature or in prompts.",
        alignment_tax.by_task_shown,
    ),
    Kind(
        "alignment_tax",
        "Alignment tax",
        "Accuracy on tasks that training was not about, and what became of it, paired by seed.",
        alignment_tax.tax_shown,
    ),
    Kind(
        "over_optimization",
        "Reward as a function of divergence",
        f"The gain over the initial policy at d = √KL, by RL {WRITTEN['rl']}, by best-of-n {WRITTEN['bon']}: "
        f"least squares, origin left out. {ALPHA} and {BETA}: mean over seeds of each one's own fit, with "
        "interval; where the form with them is highest. Of the fit to the mean over seeds: R² in the far "
        "half of the range of d, foretold from the near half: below 0 it is worse than the mean.",
        over_optimization.fits_shown,
    ),
    Kind(
        "reward_models",
        "Reward models",
        "On held-out comparisons unless said otherwise; quarters are of the pairs, by how far apart the "
        "labeller scored the two replies.",
        reward_models.models_shown,
    ),
    Kind(
        "labels",
        "Quality of the labels",
        "Agreement of two labellers, accuracy against gold, and the pairs left to learn from.",
        labels.labels_shown,
    ),
)


TABLES = tuple(kind.name for kind in KINDS)


@dataclass(frozen=True)
class Gathered:
    """What tables and figures are made of."""

    task: str  # that policies are compared on; empty for none
    among: tuple[Contender, ...]
    start: Contender | None  # the initial policy
    trained: tuple[over_optimization.Track, ...]
    best_of_n: tuple[over_optimization.Track, ...]
    frames: Mapping[str, pd.DataFrame]  # by the names of TABLES, none of them empty


def gather(run: Run, table: pd.DataFrame) -> Gathered:
    """All of it, from the tidy table and the samples on disk."""
    numbers = final(table)
    task = judged_task(run, numbers)
    among = contenders(run, numbers, task) if task else []
    start = baseline(run, among)
    trained = over_optimization.of_training(run, table)
    best_of_n = over_optimization.of_best_of_n(run, numbers, start)
    of_policies, of_start = replies.of_all(run, among, start, task)
    frames = {
        "win_rates": win_rates.matrix(of_policies | replies.reference(next(iter(of_policies.values()), {}))),
        "length_controlled": length_control.against(of_policies, start.name if start else "", of_start),
        "win_rates_by_task": alignment_tax.by_task(numbers, task, asked_tasks(run), among),
        "alignment_tax": alignment_tax.tax(run, numbers, task, among, start),
        "over_optimization": over_optimization.fits([*trained, *best_of_n]),
        "reward_models": reward_models.models(run, numbers),
        "labels": labels.labels(run, numbers),
    }
    there = {name: frame for name, frame in frames.items() if len(frame)}
    return Gathered(task, tuple(among), start, tuple(trained), tuple(best_of_n), there)


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    gathered = gather(run, table)
    written = [
        Table(kind.name, kind.title, frame, kind.shown(frame))
        for kind in KINDS
        if (frame := gathered.frames.get(kind.name)) is not None
    ]
    return Contents(written, list(_figures(run, final(table), gathered)))


def _figures(run: Run, numbers: pd.DataFrame, gathered: Gathered) -> Iterator[Plan]:
    palette = colours(run.recipe.arms(run.scale))
    if "win_rates" in gathered.frames:
        matrix = gathered.frames["win_rates"]
        yield Plan(
            "win-rates",
            f"Win rates by gold on {gathered.task}",
            "How often the row's reply is better than the column's, ties half; grey: undecided.",
            partial(win_rates.draw, matrix),
            win_rates.alt_text(matrix),
        )
    if places := frontier.places(numbers, gathered.task, gathered.among):
        swept = sweeps.sweeps(run)
        joined = " Grey lines join arms that differ in one number alone." if swept else ""
        if proxies(run, gathered.among) > 1:
            joined += " Proxy reward is by each arm's own reward model."
        yield Plan(
            "frontier",
            "Reward against divergence",
            f"A policy each, with intervals both ways, on {gathered.task}: higher at the same KL is better, "
            f"and proxy without gold is over-optimisation.{joined}",
            partial(frontier.draw, places, swept, palette),
            frontier.alt_text(places),
        )
    first = [track for track in gathered.best_of_n if track.arm == run.arms[0]]
    for name, title, tracks, beside in (
        ("over-optimisation", "Over-optimisation by RL", gathered.trained, first),
        ("over-optimisation-bon", "Over-optimisation by best-of-n", gathered.best_of_n, []),
    ):
        yield Plan(
            name,
            title,
            "Reward gained over the initial policy: proxy that rises on where gold turns is being exploited. "
            f"Dotted: R(d) = {over_optimization.form_of(tracks)}.",
            partial(over_optimization.draw, tracks, palette, beside),
            over_optimization.alt_text(tracks),
        )
    yield Plan(
        "calibration",
        "Calibration of the reward models",
        "How often the labeller agreed, of held-out pairs by the model's confidence; size: share of pairs. "
        "Below the grey line the model is too sure of itself.",
        partial(reward_models.draw_calibration, run, palette),
        ", ".join(reward_models.stages(run)),
    )
    yield Plan(
        "accuracy-by-margin",
        "Accuracy of the reward models by margin",
        "Held-out pairs in quarters by how far apart the labeller scored the replies: close ones are noise.",
        partial(reward_models.draw_margins, run, numbers, palette),
        ", ".join(reward_models.stages(run)),
    )


def read(folder: Path) -> list[tuple[Kind, pd.DataFrame]]:
    """The tables of this section that analyse wrote, with their numbers."""
    paths = [(kind, folder / f"{kind.name}.csv") for kind in KINDS]
    return [(kind, pd.read_csv(path)) for kind, path in paths if path.exists()]


def tasks_with_tables(run: Run, numbers: pd.DataFrame, folder: Path) -> set[str]:
    """The tasks whose numbers stand in tables of this section, less those that arms are compared on."""
    by_task = [frame for kind, frame in read(folder) if kind.name in BY_TASK]
    compared_on = {judged_task(run, numbers), tasks.headline(run)}
    return {task for frame in by_task for task in frame.task} - compared_on


@dataclass(frozen=True)
class Page:
    tables: list[dict[str, Any]]  # title, caption, cells of each


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    shown = []
    for kind, frame in read(folder):
        against = frame.against.iloc[0] if "{against}" in kind.caption else ""
        caption = kind.caption.format(against=against)
        shown.append({"title": kind.title, "caption": caption, "cells": cells(kind.shown(frame))})
    return Page(shown)
