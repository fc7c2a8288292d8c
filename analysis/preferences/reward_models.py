"""The quality of reward models: accuracy, calibration, and whether they prefer longer replies.

A reward model prefers one reply to another with confidence sigmoid(|difference of rewards|). The file
calibration.csv of a `reward_model` stage bins its held-out pairs by confidence. Its columns are bin_low,
bin_high, predicted (mean confidence), observed (share of pairs on which the labeller agreed) and count.
"""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.means import DASH, Mean, average, with_interval
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.page.style import dashes, panels, stacked

KIND = "reward_model"
QUARTERS = ("q1", "q2", "q3", "q4")  # quarters of the pairs, by the labeller's margin
METRICS = {  # metric -> its name on the page
    "accuracy/train": "accuracy, trained on",
    "accuracy/validation": "accuracy, held out",
    "accuracy/gap": "gap",
    "accuracy/margin=q1": "accuracy, closest quarter",
    "accuracy/margin=q2": "accuracy, second quarter",
    "accuracy/margin=q3": "accuracy, third quarter",
    "accuracy/margin=q4": "accuracy, farthest quarter",
    "accuracy/longer_is_worse": "accuracy where the longer is worse",
    "accuracy/longer_is_better": "accuracy where the longer is better",
    "length/preferred": "prefers the longer",
    "length/preferred_by_labels": "labels prefer the longer",
    "length/correlation": "correlation with length",
    "calibration/error": "calibration error",
    "members/disagreement": "disagreement of members",
}
GREY = "#b0b0b0"


def stages(run: Run) -> dict[str, tuple[str, str]]:
    """Return each reward model's name on the page -> its (arm, stage); a model that arms share comes once."""
    by_name: dict[str, tuple[str, str]] = {}
    seen = set()
    for arm in run.arms:
        nodes = run.stages(arm, run.seeds[0], KIND)
        for node in nodes:
            if node not in seen:
                seen.add(node)
                label = run.label(node)
                by_name[arm if len(nodes) == 1 else f"{arm}/{label}"] = (arm, label)
    return by_name


def calibration(run: Run, arm: str, stage: str) -> pd.DataFrame:
    """Return the calibration of a reward model, pooled over seeds, with the columns of calibration.csv.

    There are no rows if the stage wrote no such file.
    """
    parts = []
    for node in dict.fromkeys(node for seed in run.seeds for node in run.stages(arm, seed)):
        path = run.folder(node) / "calibration.csv"
        if run.label(node) == stage and path.exists():
            parts.append(pd.read_csv(path))
    columns = ["bin_low", "bin_high", "predicted", "observed", "count"]
    if not parts:
        return pd.DataFrame(columns=columns)
    rows, means = pd.concat(parts), ["predicted", "observed"]
    rows = rows[rows["count"] > 0].round({"bin_low": 9, "bin_high": 9})
    rows[means] = rows[means].mul(rows["count"], axis=0)
    sums = rows.groupby(["bin_low", "bin_high"])[[*means, "count"]].sum().reset_index()
    sums[means] = sums[means].div(sums["count"], axis=0)
    return sums[columns]


def draw_calibration(run: Run, palette: Mapping[str, str]) -> Figure | None:
    """Draw the labeller's agreement against the model's confidence, a panel for each reward model.

    The result is None if no reward model has a calibration.
    """
    by_name = {name: bins for name, place in stages(run).items() if len(bins := calibration(run, *place))}
    if not by_name:
        return None
    figure, axes = panels(list(by_name), 1.95)
    least = min(0.5, *(bins.observed.min() for bins in by_name.values()))
    for name, bins in by_name.items():
        axis, colour = axes[name], palette[name.partition("/")[0]]
        axis.set_title(name)
        axis.plot([0.5, 1], [0.5, 1], color=GREY, lw=1)
        error = 1.96 * np.sqrt(bins.observed * (1 - bins.observed) / bins["count"])
        axis.vlines(bins.predicted, bins.observed - error, bins.observed + error, color=colour, lw=1)
        axis.plot(bins.predicted, bins.observed, color=colour, lw=1.3)
        axis.scatter(bins.predicted, bins.observed, s=6 + 160 * bins["count"] / bins["count"].sum(),
                     color=colour, zorder=3)  # fmt: skip
    first = axes[next(iter(by_name))]
    first.set(xlim=(0.48, 1.02), ylim=(least - 0.05, 1.03))
    first.xaxis.set_major_locator(mpl.ticker.MultipleLocator(0.1))
    figure.supxlabel("confidence of the reward model", fontsize=10.5)
    return figure


def draw_margins(run: Run, table: pd.DataFrame, palette: Mapping[str, str]) -> Figure | None:
    """Draw the accuracy in each quarter of the held-out pairs against the labeller's mean margin there.

    The result is None if no reward model has these numbers.
    """
    lines: dict[str, list[tuple[float, Mean]]] = {}
    for name, (arm, stage) in stages(run).items():
        place = f"{arm}/{stage}"
        for q in QUARTERS:
            margin, right = (
                average(measured(table, place, metric)) for metric in (f"margin/{q}", f"accuracy/margin={q}")
            )
            if margin.n and right.n:
                lines.setdefault(name, []).append((margin.value, right))
    if not lines:
        return None
    styles = dashes(list(palette))
    colours = {name: palette[name.partition("/")[0]] for name in lines}
    drawn = {name: styles[name.partition("/")[0]] for name in lines}
    handles = [Line2D([], [], color=colours[name], ls=drawn[name], marker="o", ms=3.5, label=name)
               for name in lines]  # fmt: skip
    figure, (axis,) = stacked(1, 2.4, handles)
    for name, line in lines.items():
        x = [at for at, _ in line]
        axis.plot(x, [right.value for _, right in line], color=colours[name], ls=drawn[name], lw=1.5)
        for at, right in line:
            if not np.isnan(right.low):
                axis.plot([at] * 2, [right.low, right.high], color=colours[name], lw=1, alpha=0.7)
            axis.plot(at, right.value, "o", color=colours[name], ms=4)
    axis.axhline(0.5, color="#888888", lw=0.8)
    axis.set_xlabel("margin of the labeller, mean of each quarter of the pairs", fontsize=9.5)
    axis.set_ylabel("accuracy, held out", fontsize=9.5)
    return figure


def models(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each reward model and metric of METRICS, with the mean over seeds and its interval.

    `models` is the number of separately trained models in the mean.
    """
    rows = []
    for name, (arm, stage) in stages(run).items():
        for metric in METRICS:
            mean = average(measured(table, f"{arm}/{stage}", metric))
            if mean.n:
                rows.append({"reward_model": name, "metric": metric, "models": mean.n} | mean.columns())
    return pd.DataFrame(rows, columns=["reward_model", "metric", "value", "low", "high", "models"])


def models_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of models() for readers: a row for each metric, a column for each reward model."""
    cells = {
        (row["reward_model"], row["metric"]): with_interval(row["value"], row["low"], row["high"])
        for row in frame.to_dict("records")
    }
    names = list(dict.fromkeys(frame.reward_model))
    present = [metric for metric in METRICS if metric in set(frame.metric)]
    rows = []
    for metric in present:
        rows.append({"": METRICS[metric]} | {name: cells.get((name, metric), DASH) for name in names})
    return pd.DataFrame(rows)
