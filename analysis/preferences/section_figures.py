"""The figures of preference learning, in the order of the page: (name, title, caption, draw, description)."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from analysis.numbers.run import Run
from analysis.preferences import contenders, frontier, over_optimization, reward_models, win_rates
from analysis.preferences import sweeps as sweeps_module
from analysis.preferences.section import Found

Drawing = tuple[str, str, str, Callable[[], Figure | None], str]


def plans(run: Run, table: pd.DataFrame, found: Found, palette: Mapping[str, str]) -> Iterator[Drawing]:
    """Every one; those without data draw nothing."""
    if "win_rates" in found.frames:
        matrix = found.frames["win_rates"]
        yield (
            "win-rates",
            f"Win rates by gold on {found.task}",
            "How often the row's reply is better than the column's, ties half; grey: undecided.",
            partial(win_rates.draw, matrix),
            win_rates.said(matrix),
        )
    if found.places:
        sweeps = sweeps_module.sweeps(run)
        joined = " Grey lines join arms that differ in one number alone." if sweeps else ""
        if contenders.proxies(run, found.among) > 1:
            joined += " Proxy reward is by each arm's own reward model."
        yield (
            "frontier",
            "Reward against divergence",
            f"A policy each, with intervals both ways, on {found.task}: higher at the same KL is better, and "
            f"proxy without gold is over-optimisation.{joined}",
            partial(frontier.draw, found.places, sweeps, palette),
            frontier.said(found.places),
        )
    first = [track for track in found.best_of_n if track.arm == run.arms[0]]
    for name, title, tracks, beside in (
        ("over-optimisation", "Over-optimisation by RL", found.trained, first),
        ("over-optimisation-bon", "Over-optimisation by best-of-n", found.best_of_n, []),
    ):
        yield (
            name,
            title,
            "Reward gained over the initial policy: proxy that rises on where gold turns is being exploited. "
            f"Dotted: R(d) = {over_optimization.form_of(tracks)}.",
            partial(over_optimization.draw, tracks, palette, beside),
            over_optimization.said(tracks),
        )
    yield (
        "calibration",
        "Calibration of the reward models",
        "How often the labeller agreed, of held-out pairs by the model's confidence; size: share of pairs. "
        "Below the grey line the model is too sure of itself.",
        partial(reward_models.draw_calibration, run, palette),
        ", ".join(reward_models.stages(run)),
    )
    yield (
        "accuracy-by-margin",
        "Accuracy of the reward models by margin",
        "Held-out pairs in quarters by how far apart the labeller scored the replies: close ones are noise.",
        partial(reward_models.draw_margins, run, table, palette),
        ", ".join(reward_models.stages(run)),
    )
