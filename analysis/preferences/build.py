"""The numbers of section "preferences": comparisons of policies, reward models and labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.preferences import (
    alignment_tax,
    labels,
    length_control,
    over_optimization,
    replies,
    reward_models,
    win_rates,
)
from analysis.preferences.contenders import Contender, asked_tasks, baseline, contenders, judged_task
from analysis.preferences.over_optimization import Track

# tables that come from the completions of all seeds, which no record has
FROM_COMPLETIONS = ("win_rates", "length_controlled", "over_optimization")
BY_TASK = ("win_rates_by_task", "alignment_tax")  # tables that have a column `task`


@dataclass(frozen=True)
class Preferences:
    """The numbers of section "preferences"; `trained` and `best_of_n` are tracks of over_optimization."""

    task: str  # the task on which policies are compared; "" without one
    policies: Sequence[Contender]
    trained: Sequence[Track]
    best_of_n: Sequence[Track]
    tables: Mapping[str, pd.DataFrame]  # name -> table; tables for which the run has no data are left out
    # tasks in the tables BY_TASK, without `task` and the headline task
    elsewhere: set[str]


def build(run: Run, table: pd.DataFrame) -> Preferences:
    """Return the numbers of the section, from the tidy table and the samples on disk or from a record."""
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
    for name in FROM_COMPLETIONS:
        frames[name] = run.kept(name, partial(frames.__getitem__, name))
    filled = {name: frame for name, frame in frames.items() if len(frame)}
    of_tasks = {name for table in BY_TASK if table in filled for name in filled[table].task}
    elsewhere = of_tasks - {task, tasks.headline(run)}
    return Preferences(task, among, trained, best_of_n, filled, elsewhere)
