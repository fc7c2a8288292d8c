"""Figures over all steps of the ladder: measures during training, and rewards by the prompt's domain."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.means import average, number
from analysis.numbers.run import Run
from analysis.numbers.table import binned, measured
from analysis.page.palette import colours
from analysis.page.style import dashes, stacked
from analysis.stage_ladder.steps import Climb, Segment, Step, evaluated

# label of a panel, name of the curve that stages log, name of the measure in evaluations
MEASURES = (
    ("accuracy", "accuracy", "accuracy"),
    ("language consistency", "rewards/language_consistency/mean", "language_consistency"),
    ("readability", "rewards/readability/mean", "readability"),
    ("gold reward", "rewards/gold/mean", "gold"),
)
BY_DOMAIN = re.compile(r"rewards/(?P<reward>[^/]+)/(?P<domain>[^/]+)/mean")
IN_ALL = re.compile(r"reward/(?P<domain>[^/]+)")
ALL = "all"  # all rewards together
TALL = 1.35  # inches: the height of a panel


def held_out(
    run: Run, numbers: pd.DataFrame, ladder: Sequence[Step], measure: str
) -> tuple[str, dict[str, float]]:
    """Return the first task with `measure` at any step, and step's name -> the mean over seeds.

    The result is ("", {}) if no task has the measure.
    """
    for task in evaluated(run, ladder):
        means = {step.name: average(measured(numbers, step.at, f"{task}/{measure}")) for step in ladder}
        if known := {name: mean.value for name, mean in means.items() if mean.n}:
            return task, known
    return "", {}


@dataclass(frozen=True)
class Panel:
    label: str
    curve: str  # the curve that stages log
    task: str  # the task on which steps are evaluated; "" without one
    means: dict[str, float]  # name of a step -> its mean over seeds on held-out problems


def panels(run: Run, climb: Climb, numbers: pd.DataFrame, ladder: Sequence[Step]) -> list[Panel]:
    """Return a panel for each of MEASURES that was logged or evaluated; [] if no stage logged any of them."""
    curves = {metric for segment in climb.segments for metric in segment.rows.metric}
    if not curves & {curve for _, curve, _ in MEASURES}:
        return []
    every = [Panel(label, curve, *held_out(run, numbers, ladder, name)) for label, curve, name in MEASURES]
    return [panel for panel in every if panel.curve in curves or panel.means]


def draw(climb: Climb, among: Sequence[Panel], ladder: Sequence[Step]) -> Figure | None:
    """Draw a panel for each measure: curves of rollouts, and diamonds for held-out means; a colour a step.

    The result is None without panels (`among`).
    """
    if not among:
        return None
    names = [step.name for step in ladder]
    palette, styles = colours(names), {name: "-" if name in climb.chain else "--" for name in names}
    handles = [Line2D([], [], color=palette[n], ls=styles[n], marker="D", ms=4.5, label=n) for n in names]
    figure, axes = stacked(len(among), TALL, handles, titles=True)
    for axis, panel in zip(axes, among, strict=True):
        means = panel.means
        chain = [name for name in climb.chain if name in means]
        axis.plot([climb.ends[n] for n in chain], [means[n] for n in chain], color="#b0b0b0", lw=0.9, ls=":")
        for segment in climb.segments:
            _line(axis, segment, panel.curve, palette[segment.step], styles[segment.step])
        for name, mean in means.items():
            axis.plot(
                climb.ends[name], mean, "D", color=palette[name], ms=4.5, mec="white", mew=0.6, zorder=4
            )
        _frame(axis, climb, panel.label)
    axes[-1].set_xlabel("updates of the policy, step after step", fontsize=9.5)
    return figure


def _line(axis: Axes, segment: Segment, metric: str, colour: str, line: object) -> None:
    """Draw the mean over seeds of a segment's curve, and its range."""
    logged = segment.rows[segment.rows.metric == metric].dropna(subset=["value"])
    if not len(logged):
        return
    seeds = binned(logged)
    axis.fill_between(seeds.index, seeds.min(axis=1), seeds.max(axis=1), color=colour, alpha=0.15, lw=0)
    axis.plot(seeds.index, seeds.mean(axis=1), color=colour, lw=1.5, ls=line)


def _frame(axis: Axes, climb: Climb, label: str) -> None:
    for boundary in climb.boundaries:
        axis.axvline(boundary, color="#888888", lw=0.8)
    axis.set_title(label, fontsize=9.5)
    axis.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4))


def caption(climb: Climb, among: Sequence[Panel], ladder: Sequence[Step]) -> str:
    tasks = dict.fromkeys(panel.task for panel in among if panel.means)
    text = (
        "Lines: rollouts, mean over seeds with their range. "
        f"Diamonds: held out ({', '.join(tasks)}), after each step; they alone speak of a stage that "
        "logs nothing. Grey lines: a step ends."
    )
    aside = [step.name for step in ladder if step.name not in climb.chain]
    return f"{text} Dashed: {', '.join(aside)}, a branch beside the others." if aside else text


def alt_text(among: Sequence[Panel]) -> str:
    return "; ".join(
        f"{panel.label} on {panel.task}: "
        + ", ".join(f"{name} {number(mean)}" for name, mean in panel.means.items())
        for panel in among
        if panel.means
    )


def by_domain(climb: Climb) -> dict[str, dict[str, list[Segment]]]:
    """Return reward -> domain -> its curves, from stages that have prompts of two domains or more.

    The sum of all rewards comes first, under ALL. The rows of a segment have only the metric of this reward
    and domain.
    """
    curves: dict[str, dict[str, list[Segment]]] = {ALL: {}}
    for segment in climb.segments:
        named = []
        for metric, rows in segment.rows.groupby("metric", sort=True):
            if match := BY_DOMAIN.fullmatch(str(metric)) or IN_ALL.fullmatch(str(metric)):
                named.append((match.groupdict().get("reward", ALL), match["domain"], rows))
        if len({domain for _, domain, _ in named}) < 2:
            continue
        for reward, domain, rows in named:
            part = Segment(segment.step, segment.stage, segment.start, segment.end, rows)
            curves.setdefault(reward, {}).setdefault(domain, []).append(part)
    return {reward: domains for reward, domains in curves.items() if domains}


def draw_by_domain(climb: Climb) -> Figure | None:
    """Draw a panel for each reward of by_domain(), with a line for each domain; None without any."""
    rewards = by_domain(climb)
    if not rewards:
        return None
    domains = sorted({domain for lines in rewards.values() for domain in lines})
    palette, styles = colours(domains), dashes(domains)
    handles = [Line2D([], [], color=palette[d], ls=styles[d], lw=1.8, label=d) for d in domains]
    figure, axes = stacked(len(rewards), TALL, handles, titles=True)
    for axis, (reward, lines) in zip(axes, rewards.items(), strict=True):
        for domain, parts in lines.items():
            for part in parts:
                _line(axis, part, part.rows.metric.iloc[0], palette[domain], styles[domain])
        _frame(axis, climb, "all rewards" if reward == ALL else reward.replace("_", " "))
    starts, ends = zip(*((p.start, p.end) for lines in rewards.values() for of in lines.values() for p in of),
                       strict=True)  # fmt: skip
    room = 0.03 * (max(ends) - min(starts))
    axes[0].set_xlim(min(starts) - room, max(ends) + room)
    axes[-1].set_xlabel("updates of the policy, step after step", fontsize=9.5)
    return figure


def alt_text_by_domain(climb: Climb) -> str:
    return "; ".join(f"{reward}: {', '.join(domains)}" for reward, domains in by_domain(climb).items())
