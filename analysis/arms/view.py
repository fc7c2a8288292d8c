"""Section "results" of the page: how well every checkpoint does, and the effect of each arm."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd

from analysis.arms import before_after, best_of_n, effects, factors, forgetting, protocols, uncertainty
from analysis.arms.build import Arms
from analysis.arms.levels import levels_shown
from analysis.arms.selectors import selectors_shown
from analysis.arms.templates import best, templates_shown
from analysis.numbers import tasks
from analysis.numbers.run import Run
from analysis.page import interval_rows
from analysis.page.figures import Plan
from analysis.page.palette import colours
from analysis.page.tables import Cells, Table, cells
from analysis.page.view import View

BEFORE_AFTER = "before-after"  # name of the figure


@dataclass(frozen=True)
class Page:
    """The values that the template of results shows."""

    levels: Cells
    best_of_n: Cells  # the table of best-of-n by selector
    parts: Cells  # the parts of the variance of accuracy
    intervals: str  # a sentence's beginning on what the intervals are: uncertainty.intervals()
    fixed: str  # a phrase on what all seeds share: uncertainty.fixed()
    templates: Cells  # the table of base models with several templates
    protocols: list[protocols.Followed]


def view(run: Run, numbers: pd.DataFrame, arms: Arms, elsewhere: set[str]) -> View:
    """Return the section of results; its page leaves out tasks in `elsewhere`, shown by another section."""
    by = best(arms.templates)
    every = Table("arms", "Arms and metrics", arms.levels, levels_shown(run, arms.levels, by))
    title = "Accuracy of the best of n by what selects it"
    selected = Table("best_of_n", title, arms.best_of_n, selectors_shown(arms.best_of_n))
    by_template = Table(
        "templates", "Base models by template", arms.templates, templates_shown(arms.templates)
    )
    parts = Table("uncertainty", "Parts of the variance of accuracy", arms.uncertainty)
    levels = arms.levels[~arms.levels.task.isin(elsewhere)] if elsewhere else arms.levels
    page = Page(
        levels=cells(levels_shown(run, levels, by)),
        best_of_n=selected.cells,
        templates=by_template.cells,
        parts=parts.cells,
        intervals=uncertainty.intervals(len(run.seeds)),
        fixed=uncertainty.fixed(run),
        protocols=protocols.followed(run),
    )
    tables = [every, *(table for table in (selected, by_template, parts) if len(table.numbers))]
    return View(tables, list(_figures(run, numbers, arms.best_of_n)), page)


def _figures(run: Run, numbers: pd.DataFrame, selected: pd.DataFrame) -> Iterator[Plan]:
    palette = colours(run.recipe.arms(run.scale))
    task = tasks.headline(run)
    yield from _compared(run, numbers, task, palette)
    yield Plan(
        "best-of-n",
        "Best of n by what selects it",
        "Accuracy of the answer that is selected of n samples, with 95% bands. PRM: a process reward model, "
        "by the product, the least or the last of its steps' chances; ORM: an outcome reward model. The "
        "oracle takes a right answer where there is one.",
        partial(best_of_n.draw, selected, palette),
        best_of_n.in_words(selected),
    )
    forgotten = forgetting.curves(run, numbers)
    yield Plan(
        "forgetting",
        "What is forgotten",
        "Accuracy on tasks that were not trained, against how far the policy has moved on the task that was. "
        "A line is an arm, through its checkpoints; if all lie on one curve, distance alone decides.",
        partial(forgetting.draw, forgotten, palette),
        forgetting.in_words(forgotten),
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


def _compared(run: Run, numbers: pd.DataFrame, task: str, palette: Mapping[str, str]) -> Iterator[Plan]:
    """Yield the figures that compare arms."""
    measure = tasks.measure(numbers, task)
    word = tasks.MEASURES[measure]
    level = f"{word} on {task}"
    yield interval_rows.plan(
        BEFORE_AFTER,
        f"{word.capitalize()} on {task} before and after training",
        "Ring: the mean before training; diamond: after it, with its interval.",
        effects.before_after(run, numbers, task, palette, measure),
        level,
    )
    yield interval_rows.plan(
        "ladder",
        "The ladder: each arm adds to the one above",
        f"Final {word}. The number is the step from the arm above, paired by seed, with its interval.",
        effects.ladder(run, numbers, task, palette, measure),
        level,
        joined=True,
    )
    dials = factors.levels(run, numbers, task, measure)
    yield Plan(
        "factors",
        "One dial at a time",
        f"Final {word} with its interval where one dial alone is turned. Grey, and dotted across: "
        f"{run.arms[0]}, which is in every panel.",
        partial(factors.draw, dials, run.arms[0], palette, level),
        factors.in_words(dials),
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
