"""The report's tables as data frames, and their CSV, Markdown, LaTeX and HTML files.

A frame with numbers goes to CSV; its `shown` form, with numbers as a reader wants them, to the other formats.
"""

import json
import math
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from great_tables import GT

from analysis import claims
from analysis.means import DASH, LENGTHS, MINUS, Mean, average, number, shown
from analysis.table import Run, measured
from recipes.spec.graph import Node

# what arms are compared by: the first that was measured
MEASURES = {"gold": "gold reward", "accuracy": "accuracy", "proxy": "reward of the reward model"}
PREFERENCES = ("gold", "win_rate", "proxy", "kl")  # metrics that only preference learning has
SHOWN_WHOLE = ("accuracy", "gold", "win_rate")  # with their intervals


def largest(table: pd.DataFrame, task: str, name: str) -> str | None:
    """`pass@16` of pass@1, pass@4, pass@16: the measured metric of this name with the largest k."""
    found = table.metric[table.metric.str.startswith(f"{task}/{name}@") & table.step.isna()].unique()
    return max(found, key=lambda metric: int(metric.rpartition("@")[2]), default=None)


def tasks(run: Run, arm: str, checkpoint: str) -> dict[str, dict]:
    """The evaluation tasks of one checkpoint, resolved."""
    node = Node(run.name, run.scale, arm, run.seeds[0], checkpoint, "eval")
    return run.graph.config(run.graph.owner(node))["tasks"]


def headline(run: Run) -> str:
    """The task the summary speaks of: the first of the last checkpoint; empty where nothing is evaluated."""
    return next((task for end in run.ends[-1:] for task in tasks(run, run.arms[0], end)), "")


def measure(table: pd.DataFrame, task: str) -> str:
    """What arms are compared by on a task: gold, else accuracy; reward where nothing verifies answers."""
    there = set(table.metric[table.step.isna()])
    return next((name for name in MEASURES if f"{task}/{name}" in there), "accuracy")


def best_templates(run: Run, table: pd.DataFrame) -> set[tuple[str, str, str]]:
    """(arm, checkpoint, task) of the best template, wherever one set of problems is asked in several."""
    best = set()
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            groups: dict[str, list[tuple[float, str, str]]] = {}
            for name, task in tasks(run, arm, checkpoint).items():
                mean = average(measured(table, f"{arm}/{checkpoint}", f"{name}/accuracy")).value
                key = json.dumps(task.get("task") or task.get("lm_eval"), sort_keys=True)
                rank = -1.0 if math.isnan(mean) else mean
                groups.setdefault(key, []).append((rank, name, task.get("template", "")))
            several = (group for group in groups.values() if len({template for *_, template in group}) > 1)
            best |= {(arm, checkpoint, max(group)[1]) for group in several}
    return best


def arms(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Arms x metrics. A checkpoint that arms share appears once, under the arm that owns it."""
    best, seen, rows = best_templates(run, table), set(), []
    compared: dict[str, str] = {}  # task -> the metric it is there by
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            for task in tasks(run, arm, checkpoint):
                by = compared.setdefault(task, f"{task}/{measure(table, task)}")
                found = measured(table, f"{arm}/{checkpoint}", by)
                key = (task, *found.source)
                if not len(found) or key in seen:
                    continue
                seen.add(key)
                row: dict[str, Any] = {"arm": arm, "checkpoint": checkpoint, "task": task}
                row["best_template"] = (arm, checkpoint, task) in best
                row["models"] = found.source.nunique()
                for column, metric in _columns(table, task).items():
                    mean = average(measured(table, f"{arm}/{checkpoint}", metric))
                    row |= {column: mean.value, f"{column}_low": mean.low, f"{column}_high": mean.high}
                    row["over"] = row.get("over") or mean.over
                rows.append(row)
    return pd.DataFrame(rows)


def row_name(run: Run, row: Mapping[Hashable, Any]) -> str:
    """`arm/checkpoint` of a row of arms(), with the task where it is not the headline's."""
    where = f"{row['arm']}/{row['checkpoint']}"
    return where if row["task"] == headline(run) else f"{where}, {row['task']}"


def _columns(table: pd.DataFrame, task: str) -> dict[str, str]:
    """Column name -> metric."""
    there = set(table.metric)
    columns = {leaf: f"{task}/{leaf}" for leaf in PREFERENCES if f"{task}/{leaf}" in there}
    columns |= {"accuracy": f"{task}/accuracy"}
    for name in ("pass", "maj"):
        metric = largest(table, task, name)
        if metric:
            columns[metric.rpartition("/")[2]] = metric
    leaves = ("format_rate", "truncation_rate", *LENGTHS)
    return columns | {leaf: f"{task}/{leaf}" for leaf in leaves}


def arms_shown(run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    """The same for a reader: accuracy with its interval, the best template of several marked."""
    rows = []
    names = [column.removesuffix("_low") for column in frame.columns if column.endswith("_low")]
    if "format_rate" in names and not frame.format_rate.any():  # nobody was asked for a format
        names.remove("format_rate")
    for row in frame.to_dict("records"):
        out = {"checkpoint": row_name(run, row) + (" (best template)" if row["best_template"] else "")}
        for name in names:
            whole = Mean(row[name], row[f"{name}_low"], row[f"{name}_high"], 1, "")
            out[name.replace("_", " ")] = shown(whole) if name in SHOWN_WHOLE else number(row[name], name)
        rows.append(out | {"models": row["models"]})
    return pd.DataFrame(rows).fillna(DASH)


def holds_when(verdict: claims.Verdict) -> str:
    """The claim as an inequality of the difference d."""
    margin = verdict.margin
    if verdict.direction == "equal":
        return f"|d| < {margin:g}"
    return f"d > {margin:g}" if verdict.direction == "higher" else f"d < {-margin or 0:g}".replace("-", MINUS)


def p_value(p: float) -> str:
    """`p = 0.028`, `p < 0.001`; empty for none."""
    if math.isnan(p):
        return ""
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def verdicts_shown(verdicts: Iterable[claims.Verdict]) -> pd.DataFrame:
    """One row per claim for a reader."""
    rows = []
    for v in verdicts:
        rows.append(
            {
                "claim": v.id,
                "published claim": v.says,
                "source": v.source,
                "compared": f"{v.metric}: {v.of}" + (f" {MINUS} {v.against}" if v.against else ""),
                "holds when": holds_when(v),
                "difference d": shown(v.estimate, v.metric) if v.n else DASH,
                "p by Holm": p_value(v.p_decisive).removeprefix("p = ").removeprefix("p ") or DASH,
                "detectable": number(v.detectable, v.metric),
                "seeds": f"{v.agree}/{v.n} agree" if v.n else DASH,
                "verdict": v.verdict + (f" ({v.seeds_so_far})" if v.seeds_so_far else ""),
                "note": v.note,
            }
        )
    return pd.DataFrame(rows)


def health(checks: pd.DataFrame) -> pd.DataFrame:
    """One row per stage, arm and check over seeds, with the worst value; what failed comes first.

    The worst is the one farthest past its limit where any failed, else the one nearest to it.
    """
    rows: list[dict[str, str]] = []
    for _, group in checks.groupby(["stage", "arm", "check"], sort=False):
        failed = group[~group.ok.astype(bool)]
        seen = failed if len(failed) else group
        distance = (pd.to_numeric(seen.value) - pd.to_numeric(seen.limit)).abs().fillna(math.inf)
        worst = seen.iloc[int(distance.argmax() if len(failed) else distance.argmin())]
        state = "ok" if not len(failed) else str(worst.severity)
        rows.append(
            {
                "state": state,
                "check": worst.check,
                "stage": worst.stage,
                "arm": worst.arm,
                "passed": f"{len(group) - len(failed)}/{len(group)}",
                "value": _plain(worst.value),
                "limit": _plain(worst.limit),
                "message": worst.message or "",
            }
        )
    columns = ["state", "check", "stage", "arm", "passed", "value", "limit", "message"]
    ordered = sorted(rows, key=lambda row: row["state"] == "ok")
    return pd.DataFrame(ordered, columns=columns)


def _plain(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DASH if value is None else str(value)
    return DASH if math.isnan(value) else f"{value:.4g}"


def cost(provenance: pd.DataFrame) -> pd.DataFrame:
    """What each stage of each arm cost, over its seeds, and in all. Nothing that is shared counts twice."""
    amounts = provenance[["arm", "stage", "wall_s", "tokens", "flops"]].copy()
    numeric = ["wall_s", "tokens", "flops"]
    amounts[numeric] = amounts[numeric].apply(pd.to_numeric, errors="coerce")
    groups = amounts.groupby(["stage", "arm"], sort=False)
    frame = groups[numeric].sum().assign(runs=groups.size()).reset_index()
    total = {"stage": "all", "arm": "", "runs": len(amounts)} | amounts[numeric].sum().to_dict()
    frame = pd.concat([frame, pd.DataFrame([total])], ignore_index=True)
    frame["tokens_per_s"] = frame.tokens / frame.wall_s.where(frame.wall_s > 0)
    return frame[["stage", "arm", "runs", "wall_s", "tokens", "tokens_per_s", "flops"]]


def duration(seconds: float) -> str:
    """`2 h 05 min`, `3 min 12 s`, `9 s`."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


def power(n: float) -> str:
    """`3.8e13`."""
    return f"{n:.1e}".replace("e+", "e")


def cost_shown(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "stage": frame.stage,
            "arm": frame.arm,
            "runs": frame.runs,
            "wall-clock": frame.wall_s.map(duration),
            "tokens": frame.tokens.map(lambda n: f"{n:,.0f}"),
            "tokens/s": frame.tokens_per_s.map(lambda n: DASH if math.isnan(n) else f"{n:,.0f}"),
            "FLOPs (estimate)": frame.flops.map(power),
        }
    )


def write(
    folder: Path, name: str, title: str, frame: pd.DataFrame, readable: pd.DataFrame | None = None
) -> None:
    """<name>.csv with the numbers; .md, .tex and .html for readers."""
    readable = frame if readable is None else readable
    frame.to_csv(folder / f"{name}.csv", index=False)
    if not len(readable.columns):
        readable = pd.DataFrame({"": ["nothing to show"]})
    cells = readable.map(lambda cell: str(cell).replace("|", "\\|").replace("\n", " "))
    markdown = f"**{title}**\n\n{cells.to_markdown(index=False, disable_numparse=True)}\n"
    (folder / f"{name}.md").write_text(markdown, encoding="utf-8")
    styled = GT(readable, id=name).tab_header(title=title)
    (folder / f"{name}.tex").write_text(styled.as_latex(), encoding="utf-8")
    (folder / f"{name}.html").write_text(styled.as_raw_html(make_page=True), encoding="utf-8")
