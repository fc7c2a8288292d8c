"""What became of the completions that a stage drew to fine-tune on: the funnel of rejection sampling."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from analysis.numbers.means import DASH
from analysis.numbers.run import Run, read_json
from analysis.page.style import LINE, PALETTE, WIDTH, margins
from analysis.stage_ladder.steps import Step, made
from encore.sampling.funnel import steps

PREFIX, PROBLEMS = "funnel/", "/problems"
PLAIN = steps({})  # of every funnel; a recipe's filters come between
COLUMNS = ["step", "stage", "passed", "completions", "share", "problems"]
TALL = 0.3  # inches of a bar


def funnel(run: Run, ladder: Sequence[Step]) -> pd.DataFrame:
    """One row a step of the ladder, stage and filter: means over seeds of the completions that passed it.

    `share` is of all that were sampled; `problems`: of the prompts, those with one left.
    """
    counts: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    seen = set()
    for seed in run.seeds:
        for name, one in made(run, ladder, seed).items():
            for node in one.own:
                if node in seen:
                    continue
                seen.add(node)
                metrics = (read_json(run.sentinel(node)) or {}).get("metrics", {})
                if f"{PREFIX}{PLAIN[0]}" in metrics:
                    counts.setdefault((name, run.label(node)), []).append(metrics)
    rows = []
    for (name, stage), seeds in counts.items():
        mean = partial(_mean, seeds)
        for passed in _ordered(seeds[0]):
            left = mean(f"{PREFIX}{passed}")
            share = left / mean(f"{PREFIX}{PLAIN[0]}")
            rows.append((name, stage, passed, left, share, mean(f"{PREFIX}{passed}{PROBLEMS}")))
    return pd.DataFrame(rows, columns=COLUMNS)


def _mean(seeds: Sequence[Mapping[str, float]], metric: str) -> float:
    values = [metrics[metric] for metrics in seeds if metric in metrics]
    return sum(values) / len(values) if values else math.nan


def _ordered(metrics: Mapping[str, float]) -> list[str]:
    names = {name.removeprefix(PREFIX) for name in metrics if name.startswith(PREFIX)}
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
    """A bar a filter, as long as the share of the sampled completions that passed it."""
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
