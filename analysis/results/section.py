"""Results: how well every checkpoint does, and what each arm is worth."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page import interval_rows
from analysis.page.figures import Plan
from analysis.page.section import Contents, Made
from analysis.page.style import colours
from analysis.page.tables import Table, cells, read_text
from analysis.preferences import section as preferences
from analysis.results import (
    arms,
    before_after,
    best_of_n,
    effects,
    protocols,
    selectors,
    templates,
    uncertainty,
)

NAME = "results"
TABLES = ("arms", "best_of_n", "templates", "uncertainty")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    numbers = final(table)
    frame = arms.arms(run, numbers)
    by_template = templates.templates(run, numbers)
    tables = [
        Table("arms", "Arms and metrics", frame, arms.arms_shown(run, frame, templates.best(by_template)))
    ]
    selected = selectors.selectors(run, numbers)
    if len(selected):
        title = "Accuracy of the best of n by what selects it"
        tables.append(Table("best_of_n", title, selected, selectors.selectors_shown(selected)))
    if len(by_template):
        shown = templates.templates_shown(by_template)
        tables.append(Table("templates", "Base models by template", by_template, shown))
    parts = uncertainty.parts(run, numbers, frame)
    if len(parts):
        tables.append(Table("uncertainty", "Parts of the variance of accuracy", parts))
    return Contents(tables, list(_figures(run, numbers, selected)))


def _figures(run: Run, numbers: pd.DataFrame, selected: pd.DataFrame) -> Iterator[Plan]:
    palette = colours(run.recipe.arms(run.scale))
    task = tasks.headline(run)
    measure = tasks.measure(numbers, task)
    word = tasks.MEASURES[measure]
    level = f"{word} on {task}"
    yield interval_rows.plan(
        "ladder",
        "The ladder: each arm adds to the one above",
        f"Final {word}. The number is the step from the arm above, paired by seed, with its interval.",
        effects.ladder(run, numbers, task, palette, measure),
        level,
        joined=True,
    )
    lacking = run.document.leave_one_out
    full = lacking.full if lacking else ""
    yield interval_rows.plan(
        "leave-one-out",
        f"What {full} loses without each part",
        f"{word.capitalize()} less that of {full}, paired by seed: left of the line the part is missed.",
        effects.leave_one_out(run, numbers, task, palette, measure),
        f"{level}, less that of {full}",
        zero=True,
    )
    yield interval_rows.plan(
        "arms-forest",
        f"Final {word} against {run.arms[0]}",
        f"{word.capitalize()} less that of {run.arms[0]}, paired by seed, the best first: "
        "an interval that holds zero tells no difference.",
        effects.against_base(run, numbers, task, palette, measure),
        f"{level}, less that of {run.arms[0]}",
        zero=True,
    )
    yield interval_rows.plan(
        "levels",
        "Interquartile mean over levels of difficulty",
        "Mean of the middle half of all seeds and levels, with its interval, the best first: "
        "no single level or seed decides. Dots: seeds alone.",
        effects.by_level(run, numbers, task, palette),
        f"IQM of accuracy on {task}",
    )
    yield Plan(
        "best-of-n",
        "Best of n by what selects it",
        "Accuracy of the answer that is selected of n samples, with 95% bands. PRM: a process reward model, "
        "by the product, the least or the last of its steps' chances; ORM: an outcome reward model. The "
        "oracle takes a right answer where there is one.",
        partial(best_of_n.draw, selected, palette),
        best_of_n.in_words(selected),
    )
    yield Plan(
        "pass-at-k",
        f"pass@k on {task}",
        "Chance that one of k samples is right. Curves that cross (dotted, if intervals are apart on both "
        "sides): RL sharpened what the base could do.",
        partial(before_after.pass_at_k, run, numbers, task, palette),
    )
    yield Plan(
        "accuracy-by-difficulty",
        f"Accuracy by difficulty on {task}",
        "Where the gain comes from: on easy problems, or on problems that the base could not do.",
        partial(before_after.by_difficulty, run, numbers, task, "accuracy", palette),
    )
    yield Plan(
        "length-by-difficulty",
        f"Response length by difficulty on {task}, tokens",
        "Longer answers to harder problems are reasoning; the same growth everywhere is padding.",
        partial(before_after.by_difficulty, run, numbers, task, "length", palette),
    )


@dataclass(frozen=True)
class Page:
    arms: dict[str, Any]
    best_of_n: dict[str, Any]  # by what selects
    parts: dict[str, Any]  # of the variance of accuracy
    intervals: str  # what they are called, by the number of seeds
    fixed: str  # what stays the same from seed to seed
    templates: dict[str, Any]  # of base models with several
    protocols: list[dict[str, str]]  # that tasks follow by name


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    frame = arms.arms(run, numbers)
    elsewhere = preferences.tasks_with_tables(run, numbers, folder)
    by_template = templates.read(folder / "templates.csv")
    here = frame[~frame.task.isin(elsewhere)] if elsewhere else frame
    return Page(
        arms=cells(arms.arms_shown(run, here, templates.best(by_template))),
        best_of_n=cells(selectors.selectors_shown(selectors.read(folder / "best_of_n.csv"))),
        templates=cells(templates.templates_shown(by_template)),
        parts=cells(read_text(folder / "uncertainty.csv")),
        intervals=uncertainty.intervals(len(run.seeds)),
        fixed=uncertainty.fixed(run),
        protocols=protocols.followed(run),
    )
