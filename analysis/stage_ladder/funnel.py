"""The funnel of rejection sampling: how many completions pass each filter on the way to fine-tuning."""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.numbers.means import DASH
from analysis.numbers.run import Run
from analysis.page.palette import PALETTE
from analysis.page.style import LINE, WIDTH, margins
from analysis.stage_ladder.steps import Step, made
from encore.sampling.funnel import steps

PREFIX, PROBLEMS = "funnel/", "/problems"
PLAIN = steps({})  # steps of every funnel; the filters of a recipe come between them
COLUMNS = ["step", "stage", "passed", "completions", "share", "problems"]
TALL = 0.3  # inches: the height of a bar


def funnel(run: Run, table: pd.DataFrame, ladder: Sequence[Step]) -> pd.DataFrame:
    """Return a row for each step, stage and filter: the mean number over seeds of completions that passed.

    `share` is their share of all sampled completions; `problems` is the share of prompts of which at least
    one completion is left.
    """
    counts = table[table.step.isna() & table.metric.str.startswith(PREFIX)]
    by_stage = {source: rows.drop_duplicates("metric") for source, rows in counts.groupby("source")}
    stages: dict[tuple[str, str], dict[str, pd.Series]] = {}
    for seed in run.seeds:
        for name, step in made(run, ladder, seed).items():
            for node in step.own:
                if node.sentinel in by_stage:
                    metrics = by_stage[node.sentinel].set_index("metric").value
                    stages.setdefault((name, run.label(node)), {}).setdefault(node.sentinel, metrics)
    rows = []
    for (name, stage), seeds in stages.items():
        means = pd.DataFrame(list(seeds.values())).mean()
        for passed in _ordered(means):
            left = means[f"{PREFIX}{passed}"]
            share = left / means[f"{PREFIX}{PLAIN[0]}"]
            problems = means.get(f"{PREFIX}{passed}{PROBLEMS}", math.nan)
            rows.append((name, stage, passed, left, share, problems))
    return pd.DataFrame(rows, columns=COLUMNS)


def _ordered(metrics: pd.Series) -> list[str]:
    """Return the filters in the metrics of a funnel, in the order in which completions pass them."""
    names = {str(name).removeprefix(PREFIX) for name in metrics.index}
    names = {name for name in names if not name.endswith(PROBLEMS)}
    return [name for name in steps(dict.fromkeys(names - {*PLAIN}, 0.0)) if name in names]


def funnel_shown(frame: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for row in frame.to_dict("records"):
        problems = DASH if math.isnan(row["problems"]) else f"{row['problems']:.1%}"
        rows.append(
            {
                "step": row["step"],
                "stage": row["stage"],
                "left after": row["passed"].replace("_", " "),
                "completions": f"{row['completions']:,.0f}",
                "of all sampled": f"{row['share']:.1%}",
                "prompts with one": problems,
            }
        )
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> Figure | None:
    """Draw a bar for each filter: the share of the sampled completions that passed it; None without rows."""
    if not len(frame):
        return None
    groups = list(frame.groupby(["step", "stage"], sort=False))
    tall = TALL * len(frame) + 2 * LINE * len(groups) + 0.62
    figure = Figure(figsize=(WIDTH, tall))
    around = margins(tall, left=1.55, right=0.85, bottom=0.5, top=0.1)
    axis = figure.subplots(gridspec_kw=around)
    y, names = 0.0, {}
    for place, ((step, stage), rows) in enumerate(groups):
        axis.text(0, y, f"{step}, {stage}", fontsize=9.5, weight="bold", va="center")
        for row in rows.to_dict("records"):
            y += 1
            axis.barh(y, row["share"], color=PALETTE[place % len(PALETTE)], height=0.72)
            axis.text(1.02, y, f"{row['completions']:,.0f}", va="center", fontsize=9, clip_on=False)
            names[y] = row["passed"].replace("_", " ")
        y += 1.6
    axis.set(xlim=(0, 1), ylim=(y - 0.9, -0.7), yticks=list(names), yticklabels=list(names.values()))
    axis.xaxis.set_major_formatter("{x:.0%}")
    axis.tick_params(labelsize=9, axis="both", length=0)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("of the completions sampled; right: how many", fontsize=9.5)
    return figure


def alt_text(frame: pd.DataFrame) -> str:
    return "; ".join(
        f"{row['stage']}, {row['passed']}: {row['completions']:,.0f}" for row in frame.to_dict("records")
    )
