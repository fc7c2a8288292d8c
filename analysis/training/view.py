"""Section "training" of the page: the loss that each arm minimised, and how each arm learned."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from markupsafe import Markup

from analysis.numbers.curve_metrics import named_in
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page import interval_rows
from analysis.page.figures import Plan
from analysis.page.palette import colours
from analysis.page.tables import Cells, Table, cells
from analysis.page.view import View
from analysis.training import (
    effort,
    evaluations,
    expected,
    interactive,
    learning_curves,
    objectives,
    ratio_histograms,
    saturation,
    series,
)
from encore.recipe.metric_names import REACHED


@dataclass(frozen=True)
class Page:
    """The values that the template of training shows."""

    objectives: Cells
    conformance: Sequence[Mapping[Hashable, Any]]  # rows of objectives.conformance()
    expected: expected.Outcome | None  # whether the run follows the recipe's expected curve
    curves: Markup  # interactive.data(): the curves as JSON for the page's script


def view(
    run: Run,
    table: pd.DataFrame,
    losses: pd.DataFrame,
    jobs: pd.DataFrame,
    outcome: expected.Outcome | None,
) -> View:
    """Return the section of training.

    `losses` is the table of objectives.optimised(), `jobs` has a row for each job of the run, and `outcome`
    comes from expected.outcome().
    """
    curves = interactive.data(run, table, jobs, colours(run.recipe.arms(run.scale)))
    conformance = objectives.conformance(run).to_dict("records")
    page = Page(cells(objectives.grouped(losses)), conformance, outcome, curves)
    return View([Table("objectives", "Objectives", losses)], list(_figures(run, table)), page)


def _figures(run: Run, table: pd.DataFrame) -> Iterator[Plan]:
    palette = colours(run.recipe.arms(run.scale))
    training = learning_curves.of_rl(learning_curves.without_teachers(run, table))
    one_for_both = learning_curves.reward_is_accuracy(training)
    for curve in series.TRAINING:
        if one_for_both and curve.name == "reward":
            continue
        caption = curve.caption
        if one_for_both and curve.name == "accuracy":
            caption += " It is all that is rewarded."
        if curve.name == "accuracy":
            caption += " Thick: the mean over seeds."
            caption += f" Grey: {run.arms[0]}." if len(run.arms) > 1 else ""
        if curve.name == "kl":
            caption += learning_curves.distance(run) + learning_curves.reference(run)
        limits = learning_curves.caps(run) if curve.name == "length" else {}
        bands = expected.bands(run, curve.metrics[0][0], training)
        caption += " Dashed, with a band: what is expected of a run that is in order." if bands else ""
        draw = partial(learning_curves.draw, training, curve, palette, limits, bands)
        yield Plan(curve.name, curve.title, caption, draw)
    for curve in series.PREFERENCES:
        logged = learning_curves.of_rl(table, curve.metrics[0][0])
        draw = partial(learning_curves.draw, logged, curve, palette)
        yield Plan(curve.name, curve.title, curve.caption, draw)
    yield from evaluations.plans(run, table, palette)
    yield from _of_effort(run, table, training, palette)
    yield Plan(
        "ratios",
        "Importance ratios",
        "Share of the log ratios of tokens (solid) and sequences (dashed) in each bin, four to a decade, "
        "in the last fifth of training; beyond the dotted lines the clip acts.",
        partial(ratio_histograms.draw, run, palette),
    )


def _of_effort(
    run: Run, table: pd.DataFrame, training: pd.DataFrame, palette: Mapping[str, str]
) -> Iterator[Plan]:
    """Yield the figures of accuracy against entropy and against what it took; `training` has all curves."""
    yield Plan(
        "entropy-accuracy",
        "Entropy against accuracy",
        "A line an arm, from ring to disc, dots at equal times: at the same accuracy the higher line has "
        "more left to explore.",
        partial(effort.entropy_accuracy, training, palette),
    )
    yield Plan(
        "accuracy-by-effort",
        "Accuracy by what it took",
        "An arm that is ahead by updates alone pays in samples or operations. Trailing mean of 5 rollouts.",
        partial(effort.accuracy_by_effort, run, training, palette),
    )
    yield Plan(
        "saturation",
        "Where accuracy is heading",
        "The sigmoid of accuracy over compute (arXiv 2510.13786), fitted to the first half of training: dots "
        "off the dashed line are what the first half did not foretell. In the title its asymptote.",
        partial(saturation.draw, training, palette),
    )
    for goal in named_in(run.document.claimed_metrics, REACHED):
        for unit, label in effort.UNITS.items():
            yield interval_rows.plan(
                f"{unit}-to-accuracy-{goal}",
                f"{unit.capitalize()} to a training accuracy of {goal}",
                "The cheapest arm first. Dots: seeds; diamond: their mean. "
                "A seed that never got there counts with all it spent.",
                effort.effort_rows(final(table), unit, goal, palette),
                label,
            )
