"""Learning curves: the metrics that training logged, by step, in a panel for each arm."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.curve_metrics import COUNTED
from analysis.numbers.reference_curves import Reference
from analysis.numbers.run import Run
from analysis.numbers.table import POINTS, binned, curves
from analysis.page.style import panels, powers_of_ten
from analysis.training.expected import BAND, draw_band
from analysis.training.loss_settings import reference_every
from analysis.training.objectives import stages
from analysis.training.series import Series
from encore.recipe.kinds.distillation import TEACHER
from encore.recipe.kinds.grpo import GrpoStage
from encore.recipe.kinds.pairs import PairsStage
from encore.recipe.kinds.policy_gradient import PolicyGradientStage
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import Stage

CAP = "#333333"  # colour of the line at the cap on a reply's length
MOST_LINES = 80  # largest number of thin lines of single seeds in a figure; with more, no thin line is drawn
# With more panels than this, panels are lower, curves have fewer points, and the first arm is not repeated.
MANY_PANELS = 16


def caps(run: Run) -> dict[str, dict[float, float]]:
    """Return arm -> step -> the cap on the tokens of a reply from this step on.

    An arm is left out unless exactly one of its stages has a cap.
    """
    by_arm = {}
    for arm in run.arms:
        sampled = [caps for node in stages(run, arm, run.seeds[0]) if (caps := _caps(run.graph.stage(node)))]
        if len(sampled) == 1:
            by_arm[arm] = {float(step): float(cap) for step, cap in sorted(sampled[0].items())}
    return by_arm


def _caps(stage: Stage) -> Mapping[str, int]:
    """Return step -> cap on the tokens of a reply from this step on; empty if the stage sets no cap."""
    if isinstance(stage, GrpoStage) and stage.caps:
        return stage.caps
    if not isinstance(stage, RolloutStage | PolicyGradientStage):
        return {}
    if "max_completion_length" not in stage.args.model_fields_set:
        return {}
    return {"0": stage.args.max_completion_length or 0}


def _mark(axis: Axes, steps: Mapping[float, float]) -> None:
    """Draw the cap as a dotted line, unless it is far above all replies; `steps`: step -> cap from it on."""
    last, highest = axis.dataLim.x1, axis.dataLim.y1
    if min(steps.values()) <= 2 * highest:
        x, y = [*steps, max(last, *steps)], [*steps.values(), [*steps.values()][-1]]
        axis.step(x, y, where="post", color=CAP, lw=1.0, ls=":")


def draw(
    table: pd.DataFrame,
    series: Series,
    palette: Mapping[str, str],
    limits: Mapping[str, Mapping[float, float]] = MappingProxyType({}),
    bands: Mapping[str, tuple[Reference, float]] = MappingProxyType({}),
) -> Figure | None:
    """Draw learning curves in a panel for each arm: mean and range over seeds, and a thin line for each seed.

    Thin lines are left out if a panel has several metrics, or if the figure would have more than MOST_LINES.
    The result is None if no arm has logged the metrics. limits: caps(), for a figure of lengths; bands:
    expected.bands().
    """
    names = [name for name, _, _ in series.metrics]
    wanted = curves(table, names).dropna(subset=["value"])
    if series.older and not len(wanted):
        wanted = curves(table, [series.older]).dropna(subset=["value"]).assign(metric=names[0])
    arms = [arm for arm in palette if arm in set(wanted.arm)]
    if not arms:
        return None
    labels = [(label, line) for _, label, line in series.metrics if label]
    handles = [Line2D([], [], color="#333333", ls=line, lw=1.8, label=label) for label, line in labels]
    if limits:
        handles.append(Line2D([], [], color=CAP, lw=1.0, ls=":", label="cap"))
    if bands:
        handles.append(Line2D([], [], color=BAND, lw=1.2, ls="--", label="expected"))
    crowded = len(arms) > MANY_PANELS
    figure, axes = panels(arms, height=1.25 if crowded else 1.75, handles=handles)
    groups = dict(tuple(wanted.groupby(["arm", "metric"])))
    points = POINTS // 8 if crowded else POINTS
    reference = binned(groups.get((arms[0], names[0])), points)
    for arm in arms:
        axis, colour = axes[arm], palette[arm]
        axis.set_title(arm)
        if arm != arms[0] and len(reference) and not crowded:
            axis.plot(reference.index, reference.mean(axis=1), color="#b0b0b0", lw=1)
        for metric, _, line in series.metrics:
            seeds = binned(groups.get((arm, metric)), points)
            if not len(seeds):
                continue
            if len(series.metrics) < 3:
                low, high = seeds.min(axis=1), seeds.max(axis=1)
                axis.fill_between(seeds.index, low, high, color=colour, alpha=0.15, lw=0)
            if len(series.metrics) == 1 and len(arms) * seeds.shape[1] <= MOST_LINES:
                axis.plot(seeds.index, seeds, color=colour, lw=0.5, alpha=0.45, ls=line)
            axis.plot(seeds.index, seeds.mean(axis=1), color=colour, lw=1.8, ls=line)
    for arm, steps in limits.items():
        if arm in arms:
            _mark(axes[arm], steps)
    for arm, (expected, margin) in bands.items():
        if arm in arms:
            draw_band(axes[arm], expected, margin)
    if series.log and (wanted.value > 0).any():
        powers_of_ten(axes[arms[0]], wanted.value[wanted.value > 0])
    figure.supxlabel("step", fontsize=10.5)
    return figure


def without_teachers(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table without the curves of stages that make a teacher for another stage of their arm."""
    teachers = [
        (arm, run.label(teacher))
        for arm in run.arms
        for seed in run.seeds[:1]
        for node in stages(run, arm, seed)
        if (teacher := run.graph.inputs(node).get(TEACHER))
    ]
    taught = pd.MultiIndex.from_frame(table[["arm", "node"]]).isin(teachers) & table.step.notna()
    return table[~taught]


def of_rl(table: pd.DataFrame, by: str = "reward") -> pd.DataFrame:
    """Return the learning curves of all stages that log the metric `by`.

    The stages of an arm are joined into one curve: steps, samples, operations and seconds continue from stage
    to stage.
    """
    logged = table[table.step.notna()]
    parts = []
    for _, rows in logged.groupby("arm", sort=False):
        nodes = rows.node[rows.metric == by].unique()  # in the order of training
        done = 0.0
        spent: dict[Any, float] = {}  # (seed, metric) -> what the earlier stages took
        for node in nodes:
            part = rows[rows.node == node]
            earlier = [spent.get(place, 0.0) for place in zip(part.seed, part.metric, strict=True)]
            part = part.assign(step=part.step + done, value=part.value + earlier)
            done = part.step.max()
            spent |= part[part.metric.isin(COUNTED)].groupby(["seed", "metric"]).value.max().to_dict()
            parts.append(part)
    return pd.concat(parts) if parts else logged[:0]


def reward_is_accuracy(table: pd.DataFrame) -> bool:
    """Return whether reward and accuracy are equal at each step of all curves; one figure then shows both."""
    place = ["arm", "node", "seed", "step"]
    rewards, accuracies = (
        table[table.metric == name].set_index(place).value.sort_index() for name in ("reward", "accuracy")
    )
    return rewards.equals(accuracies)


def distance(run: Run) -> str:
    """Return the unit of the KL divergence, as the end of a caption: PPO and KTO log it per completion."""
    kinds = {run.graph.stage(node).run for node in run.all_nodes() if node.kind == "stage"}
    by_completion = " and ".join(kind.upper() for kind in ("ppo", "kto") if kind in kinds)
    if by_completion and "grpo" in kinds:
        return f", in nats: per completion of {by_completion}, per token of GRPO."
    return ", in nats per completion." if by_completion else ", in nats per token."


def reference(run: Run) -> str:
    """Return a sentence on the first arm's reference policy in the KL divergence; empty if it has none."""
    for node in stages(run, run.arms[0], run.seeds[0]):
        stage = run.graph.stage(node)
        if isinstance(stage, PairsStage) and not stage.has_reference:
            continue
        if isinstance(stage, GrpoStage | PairsStage) and stage.args.beta:
            every = reference_every(stage)
            follows = f"follows the policy every {every} steps, and the KL is to the latest"
            return f" The reference {follows if every else 'is the model that training started from'}."
    return ""
