"""What a report of preference learning has beside the verdicts, each part only where it has data.

The tables are written by analyse as <name>.csv (and for readers) and read from there by report.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page import tables
from analysis.preferences import (
    alignment_tax,
    contenders,
    frontier,
    labels,
    length_control,
    over_optimization,
    reward_models,
    win_rates,
)
from analysis.preferences.contenders import Contender, Replies
from analysis.preferences.over_optimization import Track
from analysis.preferences.reward_fits import ALPHA, BETA, WRITTEN

BY_TASK = ("win_rates_by_task", "alignment_tax")  # tables with columns task: theirs need not be shown again
RIVAL = "reference reply"  # the world's own reply to each item, among the contenders
Shown = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Table:
    """A table of the page: its file's name, what stands above and below it, and its form for a reader."""

    name: str
    title: str
    caption: str
    shown: Shown


TABLES = (
    Table(
        "win_rates",
        "Win rates by gold",
        "How often a reply of the row has more gold reward than one of the column to the same prompt, ties "
        "half. Interval: items and seeds drawn again, in pairs. Of more than "
        f"{win_rates.MOST} policies {win_rates.MOST} are shown, one of each kind first.",
        win_rates.table_shown,
    ),
    Table(
        "length_controlled",
        "Win rates at equal length",
        "Against {against}: as it is, and as a logistic model in the difference of lengths says it would be "
        "if replies were equally long (AlpacaEval's length-controlled win rate). A rate that falls there was "
        "partly bought with length; where the lengths of the two hardly overlap, it is an extrapolation.",
        length_control.against_shown,
    ),
    Table(
        "win_rates_by_task",
        "Win rates against the reference replies, by task",
        "Tasks differ in temperature or in prompts.",
        alignment_tax.by_task_shown,
    ),
    Table(
        "alignment_tax",
        "Alignment tax",
        "Accuracy on tasks that training was not about, and what became of it, paired by seed.",
        alignment_tax.tax_shown,
    ),
    Table(
        "over_optimization",
        "Reward as a function of divergence",
        f"The gain over the initial policy at d = √KL, by RL {WRITTEN['rl']}, by best-of-n {WRITTEN['bon']}: "
        f"least squares, origin left out. {ALPHA} and {BETA}: mean over seeds of each one's own fit, with "
        "interval; where the form with them is highest. Of the fit to the mean over seeds: R² in the far "
        "half of the range of d, foretold from the near half: below 0 it is worse than the mean.",
        over_optimization.table_shown,
    ),
    Table(
        "reward_models",
        "Reward models",
        "On held-out comparisons unless said otherwise; quarters are of the pairs, by how far apart the "
        "labeller scored the two replies.",
        reward_models.table_shown,
    ),
    Table(
        "labels",
        "Quality of the labels",
        "Agreement of two labellers, accuracy against gold, and the pairs left to learn from.",
        labels.labels_shown,
    ),
)


@dataclass(frozen=True)
class Found:
    """Everything that was found; `frames` by the names of TABLES, none of them empty."""

    task: str
    among: tuple[Contender, ...]
    start: Contender | None
    places: tuple[frontier.Place, ...]
    trained: tuple[Track, ...]
    best_of_n: tuple[Track, ...]
    frames: Mapping[str, pd.DataFrame]


def gather(run: Run, table: pd.DataFrame) -> Found:
    """All of it, from the tidy table and the samples on disk."""
    numbers = final(table)
    task = contenders.judged_task(run, numbers)
    among = contenders.contenders(run, numbers, task) if task else []
    start = contenders.baseline(run, among)
    trained = over_optimization.of_training(run, table)
    best_of_n = over_optimization.of_best_of_n(run, numbers, start)
    said, rivals = replies(run, among, start, task)
    frames = {
        "win_rates": win_rates.matrix(said | rival(next(iter(said.values()), {}))),
        "length_controlled": length_control.against(said, start.name if start else "", rivals),
        "win_rates_by_task": alignment_tax.by_task(numbers, task, contenders.asked_tasks(run), among),
        "alignment_tax": alignment_tax.tax(run, numbers, task, among, start),
        "over_optimization": over_optimization.table_of([*trained, *best_of_n]),
        "reward_models": reward_models.table_of(run, numbers),
        "labels": labels.labels(run, numbers),
    }
    return Found(
        task,
        tuple(among),
        start,
        tuple(frontier.places(numbers, task, among)),
        tuple(trained),
        tuple(best_of_n),
        {name: frame for name, frame in frames.items() if len(frame)},
    )


def replies(
    run: Run, among: Sequence[Contender], start: Contender | None, task: str
) -> tuple[dict[str, dict[int, Replies]], dict[str, dict[int, Replies]]]:
    """What at most MOST contenders said, by name and seed; and `start`, judged by each one's proxy."""
    said: dict[str, dict[int, Replies]] = {}
    rivals: dict[str, dict[int, Replies]] = {}
    read: contenders.Read = {}
    if start is None:
        return said, rivals
    for who in contenders.representatives(among, win_rates.MOST):
        if by_seed := contenders.replies(run, who, task, read):
            said[who.name] = by_seed
            rivals[who.name] = contenders.replies(run, contenders.in_arm(run, start, who.arm), task, read)
    return said, rivals


def rival(by_seed: Mapping[int, Replies]) -> dict[str, dict[int, Replies]]:
    """The world's own replies as one more contender, the same with every seed; nothing without them."""
    one = next((reply for reply in by_seed.values() if "reference_gold" in reply.scores), None)
    if one is None:
        return {}
    same = Replies(one.items, {"gold": np.asarray(one.scores["reference_gold"])})
    return {RIVAL: dict.fromkeys(by_seed, same)}


def write(folder: Path, where: str, frames: Mapping[str, pd.DataFrame]) -> None:
    """Every table that there is into `folder`; one that an earlier run left there goes."""
    for kind in TABLES:
        if kind.name in frames:
            frame = frames[kind.name]
            tables.write(folder, kind.name, f"{kind.title}. {where}", frame, kind.shown(frame))
        else:
            for suffix in ("csv", "md", "tex", "html"):
                (folder / f"{kind.name}.{suffix}").unlink(missing_ok=True)


def read(folder: Path) -> list[tuple[Table, str, pd.DataFrame]]:
    """(table, caption, numbers) of every table in `folder`."""
    found = []
    for kind in TABLES:
        if (path := folder / f"{kind.name}.csv").exists():
            frame = pd.read_csv(path)
            against = frame.against.iloc[0] if "{against}" in kind.caption else ""
            found.append((kind, kind.caption.format(against=against), frame))
    return found
