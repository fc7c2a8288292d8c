"""Section "preferences" of the page: policies compared, rewards and KL, reward models, labels.

Tables and figures for which the run has no data are left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.figures import Plan
from analysis.page.palette import colours
from analysis.page.tables import Cells, Table
from analysis.page.view import View
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
from analysis.preferences.build import FROM_COMPLETIONS, Preferences
from analysis.preferences.contenders import proxies
from analysis.preferences.reward_fits import ALPHA, BETA, WRITTEN


@dataclass(frozen=True)
class Kind:
    """A table of this section: its name and texts, and the function `shown` that makes it for readers."""

    name: str
    title: str
    caption: str  # caption of the table; {against} is the policy that the others are compared with
    shown: Callable[[pd.DataFrame], pd.DataFrame]


KINDS = (
    Kind(
        "win_rates",
        "Win rates by gold",
        "How often a reply of the row has more gold reward than one of the column to the same prompt, ties "
        "half. Interval: seeds drawn again, each with its items; where all seeds answer the same items, "
        "items too, in pairs. Of more than "
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


@dataclass(frozen=True)
class Captioned:
    """A table of the page with its caption."""

    title: str
    caption: str
    cells: Cells


@dataclass(frozen=True)
class Page:
    """The values that the template of preferences shows."""

    tables: list[Captioned]


def view(run: Run, table: pd.DataFrame, result: Preferences) -> View:
    """Return the section of preferences; `table` is the tidy table of the run."""
    tables, captioned, of_seeds = [], [], _of_seeds(run, result)
    for kind in KINDS:
        if (frame := result.tables.get(kind.name)) is not None:
            shown = Table(kind.name, kind.title, frame, kind.shown(frame))
            against = frame.against.iloc[0] if "{against}" in kind.caption else ""
            tables.append(shown)
            caption = kind.caption.format(against=against)
            if kind.name in FROM_COMPLETIONS:
                caption += of_seeds
            captioned.append(Captioned(kind.title, caption, shown.cells))
    return View(tables, list(_figures(run, final(table), result, of_seeds)), Page(captioned))


def _of_seeds(run: Run, result: Preferences) -> str:
    """Return a sentence on the number of seeds of the tables FROM_COMPLETIONS; "" if they are of all.

    A record that seeds were joined to (analysis/join.py) has these tables of its first seeds alone.
    """
    matrix = result.tables.get("win_rates")
    seeds = len(run.seeds) if matrix is None else matrix.seeds.max()
    if run.record is None or seeds == len(run.seeds):
        return ""
    return f" Of {seeds} of {len(run.seeds)} seeds: the record lacks the completions of the others."


def _figures(run: Run, numbers: pd.DataFrame, result: Preferences, of_seeds: str) -> Iterator[Plan]:
    palette = colours(run.recipe.arms(run.scale))
    if (matrix := result.tables.get("win_rates")) is not None:
        yield Plan(
            "win-rates",
            f"Win rates by gold on {result.task}",
            "How often the row's reply is better than the column's, ties half; grey: undecided." + of_seeds,
            partial(win_rates.draw, matrix),
            win_rates.alt_text(matrix),
        )
    if places := frontier.places(numbers, result.task, result.policies):
        swept = sweeps.sweeps(run)
        joined = " Grey lines join arms that differ in one number alone." if swept else ""
        if proxies(run, result.policies) > 1:
            joined += " Proxy reward is by each arm's own reward model."
        yield Plan(
            "frontier",
            "Reward against divergence",
            f"A policy each, with intervals both ways, on {result.task}: higher at the same KL is better, "
            f"and proxy without gold is over-optimisation.{joined}",
            partial(frontier.draw, places, swept, palette),
            frontier.alt_text(places),
        )
    first = [track for track in result.best_of_n if track.arm == run.arms[0]]
    for name, title, tracks, beside in (
        ("over-optimisation", "Over-optimisation by RL", result.trained, first),
        ("over-optimisation-bon", "Over-optimisation by best-of-n", result.best_of_n, []),
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
