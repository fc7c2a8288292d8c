"""The report's figures. Every arm keeps one colour in all of them; what was before training is grey."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import tables
from analysis.claims import Verdict, measured
from analysis.drawing import STYLE, WIDTH, colours, margins, panels, save
from analysis.table import Run, curves, final
from recipes import graph

BEFORE = "#6b6b6b"
POINTS = 100  # of a curve, beyond which neighbouring steps are averaged
VERDICT_COLOURS = {
    "reproduced": "#00704a",
    "supported so far": "#00704a",
    "inconclusive": "#6b6b6b",
    "opposed so far": "#b3400b",
    "contradicted": "#b3400b",
    "not tested": "#6b6b6b",
}


@dataclass(frozen=True)
class Series:
    """One learning-curve figure: the metrics drawn in each panel, as (name, label, line style)."""

    name: str
    title: str
    caption: str
    metrics: tuple[tuple[str, str, str], ...]


TRAINING = (
    Series(
        "accuracy",
        "Accuracy of training rollouts",
        "Share of sampled answers that the verifier accepts. It should rise and flatten.",
        (("accuracy", "", "-"),),
    ),
    Series(
        "length",
        "Response length in tokens",
        "Correct (solid) and incorrect (dashed) apart: growth of the incorrect alone is length bias.",
        (("length/correct", "correct", "-"), ("length/incorrect", "incorrect", "--")),
    ),
    Series(
        "reward",
        "Reward",
        "What the arm was trained on: compare it with accuracy; reward that rises alone is being gamed.",
        (("reward", "", "-"),),
    ),
    Series(
        "entropy",
        "Entropy of the policy, nats per token",
        "Exploration left: near zero the samples of a group no longer differ and learning stops.",
        (("entropy", "", "-"),),
    ),
    Series(
        "kl",
        "KL divergence to the reference policy",
        "How far the policy has moved from the reference, in nats per token.",
        (("kl", "", "-"),),
    ),
    Series(
        "clip",
        "Share of clipped tokens",
        "Tokens whose probability ratio left the clip range: zero means clipping plays no part.",
        (("clip_ratio/region_mean", "", "-"),),
    ),
    Series(
        "zero-variance",
        "Share of groups with zero variance",
        "Groups whose rewards are all alike teach nothing: here the batch shrinks without saying so.",
        (("frac_reward_zero_std", "", "-"),),
    ),
)


@dataclass(frozen=True)
class Drawn:
    """A figure on disk (name.svg, name.png) with the words that go with it."""

    name: str
    title: str
    caption: str
    alt: str


def training(table: pd.DataFrame, series: Series, palette: Mapping[str, str]) -> Figure | None:
    """Learning curves, one panel an arm: a thin line a seed (where one metric is drawn), mean and range."""
    wanted = curves(table, [name for name, _, _ in series.metrics]).dropna(subset=["value"])
    arms = [arm for arm in palette if arm in set(wanted.arm)]
    if not arms:
        return None
    figure, axes = panels(arms)
    reference = _binned(wanted[(wanted.arm == arms[0]) & (wanted.metric == series.metrics[0][0])])
    for arm in arms:
        axis, colour = axes[arm], palette[arm]
        axis.set_title(arm)
        if arm != arms[0]:
            axis.plot(reference.index, reference.mean(axis=1), color="#b0b0b0", lw=1)
        for metric, label, line in series.metrics:
            seeds = _binned(wanted[(wanted.arm == arm) & (wanted.metric == metric)])
            if not len(seeds):
                continue
            low, high = seeds.min(axis=1), seeds.max(axis=1)
            axis.fill_between(seeds.index, low, high, color=colour, alpha=0.15, lw=0)
            if len(series.metrics) == 1:  # with two, the lines of seeds cannot be told apart
                axis.plot(seeds.index, seeds, color=colour, lw=0.5, alpha=0.45, ls=line)
            axis.plot(seeds.index, seeds.mean(axis=1), color=colour, lw=1.8, ls=line, label=label or None)
        if any(label for _, label, _ in series.metrics) and arm == arms[0]:
            axis.legend(fontsize=9, loc="best", handlelength=1.6)
    figure.supxlabel("step", fontsize=10.5)
    return figure


def _binned(rows: pd.DataFrame) -> pd.DataFrame:
    """Steps x seeds, neighbouring steps averaged so that at most POINTS remain."""
    wide = rows.pivot_table(index="step", columns="seed", values="value")
    if len(wide) <= POINTS:
        return wide
    bins = np.arange(len(wide)) * POINTS // len(wide)
    steps = wide.index.to_series().groupby(bins).mean()
    return wide.groupby(bins).mean().set_index(steps.to_numpy())


def pass_at_k(run: Run, table: pd.DataFrame, task: str, palette: Mapping[str, str]) -> Figure | None:
    """pass@k of each arm before (grey) and after training against k, with 95% intervals."""

    def points(arm: str, checkpoint: str) -> list[tuple[float, tables.Mean]]:
        names = table.metric[(table.arm == arm) & table.metric.str.startswith(f"{task}/pass@")].unique()
        ks = sorted(int(name.rpartition("@")[2]) for name in names)
        return [(k, tables.average(measured(table, f"{arm}/{checkpoint}", f"{task}/pass@{k}"))) for k in ks]

    figure = _before_after(run, palette, points, "k samples")
    if figure:
        for axis in figure.axes:
            axis.set_xscale("log", base=2)
            axis.xaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%d"))
            axis.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    return figure


def by_difficulty(
    run: Run, table: pd.DataFrame, task: str, what: str, palette: Mapping[str, str]
) -> Figure | None:
    """`what` (accuracy or length) of each arm before and after against the problem's difficulty."""
    prefix = f"{task}/{what}/difficulty="

    def points(arm: str, checkpoint: str) -> list[tuple[float, tables.Mean]]:
        names = table.metric[(table.arm == arm) & table.metric.str.startswith(prefix)].unique()
        levels = sorted(float(name.removeprefix(prefix)) for name in names)
        return [(d, tables.average(measured(table, f"{arm}/{checkpoint}", f"{prefix}{d:g}"))) for d in levels]

    return _before_after(run, palette, points, "difficulty")


def _before_after(
    run: Run,
    palette: Mapping[str, str],
    points: Callable[[str, str], list[tuple[float, tables.Mean]]],
    label: str,
) -> Figure | None:
    found = {arm: [points(arm, checkpoint) for checkpoint in run.ends] for arm in run.arms}
    arms = [arm for arm, sides in found.items() if any(mean.n for side in sides for _, mean in side)]
    if not arms:
        return None
    figure, axes = panels(arms)
    for arm in arms:
        axes[arm].set_title(arm)
        styles = [(BEFORE, "--"), (palette[arm], "-")][-len(run.ends) :]
        for name, side, (colour, line) in zip(run.ends, found[arm], styles, strict=True):
            side = [(x, mean) for x, mean in side if mean.n]
            x, y = [x for x, _ in side], [mean.value for _, mean in side]
            low = [m.value - m.low if m.low <= m.value else 0 for _, m in side]
            high = [m.high - m.value if m.high >= m.value else 0 for _, m in side]
            axes[arm].errorbar(
                x, y, yerr=[low, high], color=colour, ls=line, lw=1.6, marker="o", ms=3.5, elinewidth=1,
                label=name,
            )  # fmt: skip
    axes[arms[0]].legend(fontsize=9, loc="best", handlelength=1.8)
    figure.supxlabel(label, fontsize=10.5)
    return figure


def forest(verdicts: Sequence[Verdict]) -> Figure | None:
    """The tested claims' paired differences, each on its own scale, over the range where the claim holds."""
    tested = [v for v in verdicts if v.n]
    if not tested:
        return None
    tall = 0.98 * len(tested) + 0.1
    figure = Figure(figsize=(WIDTH, tall))
    around = margins(tall, left=0.3, right=0.2, bottom=0.3, top=0.26) | {"hspace": 1.0}
    axes = figure.subplots(len(tested), 1, squeeze=False, gridspec_kw=around).ravel()
    for v, axis in zip(tested, axes, strict=True):
        colour = VERDICT_COLOURS[v.verdict]
        edges = [-v.margin, v.margin] if v.direction == "equal" else [v.margin * _sign(v.direction)]
        marks = [*v.differences, *edges, 0.0]
        room = 0.08 * ((max(marks) - min(marks)) or 1.0)
        left, right = min(marks) - room, max(marks) + room
        holds = {"higher": (edges[0], right), "lower": (left, edges[0])}.get(v.direction, tuple(edges[:2]))
        axis.axvspan(*holds, color="#dcefe4", lw=0)
        for edge in edges:
            axis.axvline(edge, color="#00704a", lw=1, ls=":")
        axis.axvline(0, color="#888888", lw=0.8)
        axis.plot(v.differences, [0.32] * v.n, "|", color=colour, ms=6, alpha=0.8)
        axis.plot(v.mean, 0, "D", color=colour, ms=5.5)
        if v.n > 1:
            axis.plot([v.low, v.high], [0, 0], color=colour, lw=2.2, solid_capstyle="butt")
        axis.set(xlim=(left, right), ylim=(-0.5, 0.6), yticks=[])
        axis.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5))
        axis.grid(False)
        axis.spines["left"].set_visible(False)
        axis.tick_params(labelsize=9)
        axis.set_title(v.id, fontsize=10)
        axis.set_title(v.verdict, fontsize=9.5, loc="right", color=colour)
    return figure


def _sign(direction: str) -> float:
    return 1.0 if direction == "higher" else -1.0


def reference(run: Run) -> str:
    """What the KL divergence is measured to, by the first arm's config; empty where no stage has one."""
    arm = run.arms[0]
    for name in graph.stages(run.recipe, run.scale, arm):
        node = graph.Node(run.name, run.scale, arm, run.seeds[0], name, "stage")
        args = graph.resolve(run.recipes, node).get("args", {})
        if not args.get("beta"):
            continue
        every, last = args.get("ref_model_sync_steps", 512), args.get("max_steps", -1)  # TRL's defaults
        if args.get("sync_ref_model") and not 0 < last < every:
            return f" The reference follows the policy every {every} steps."
        return " The reference is the model that training started from."
    return ""


def draw_all(run: Run, table: pd.DataFrame, verdicts: Sequence[Verdict], folder: Path) -> list[Drawn]:
    """Every figure that there is data for, into `folder`; in the order of the report."""
    folder.mkdir(parents=True, exist_ok=True)
    palette = colours(run.recipe.arms(run.scale))
    task, numbers = tables.headline(run), final(table)
    drawn = []
    arms = ", ".join(run.arms)

    def keep(figure: Figure | None, name: str, title: str, caption: str) -> None:
        if figure is not None:
            save(figure, folder, name)
            alt = f"{title}. Arms: {arms}. The numbers are in table.csv."
            drawn.append(Drawn(name, title, caption, alt))

    with mpl.rc_context(STYLE):
        keep(
            forest(verdicts),
            "forest",
            "Differences, paired by seed",
            "Diamond: mean; bar: 95% interval; ticks: seeds; green ground: where the claim holds.",
        )
        for series in TRAINING:
            caption = series.caption + (reference(run) if series.name == "kl" else "")
            keep(training(table, series, palette), series.name, series.title, caption)
        keep(
            pass_at_k(run, numbers, task, palette),
            "pass-at-k",
            f"pass@k on {task}",
            "Chance that one of k samples is right. Curves that cross: RL sharpened what the base could do.",
        )
        keep(
            by_difficulty(run, numbers, task, "accuracy", palette),
            "accuracy-by-difficulty",
            f"Accuracy by difficulty on {task}",
            "Where the gain comes from: on easy problems, or on problems that the base could not do.",
        )
        keep(
            by_difficulty(run, numbers, task, "length", palette),
            "length-by-difficulty",
            f"Response length by difficulty on {task}, tokens",
            "Longer answers to harder problems are reasoning; the same growth everywhere is padding.",
        )
    return drawn
