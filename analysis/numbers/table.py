"""The tidy table from which every number, table and figure of a report is computed.

Each row is a number: [recipe, scale, arm, seed, node, step, metric, value, low, high, source].

- `node` is a stage (`grpo`), a checkpoint (`after`), or `recipe/stage` for a stage of another recipe.
- `step` is the training step of a learning curve, and missing for a final number. An evaluation within a
  stage (`evaluate_every`) has the node of the stage's checkpoint, and its step.
- `low`, `high` are an evaluation's own 95% interval (over items and samples), otherwise missing.
- `updates_to/…`, `auc/…`, `collapsed/…`, `peak/gold` and the like are read off the learning curve
  (numbers.curve_metrics), if claims, gates or published numbers name them.
- `<task>/gained`, `/lost`, `/crossover` and the like are from numbers.coverage, for a recipe with `coverage`.
- Arm `frontier` and node <name> mark a number read off a frontier at a KL (numbers.frontiers).
- `<task>@<template>/…` measures a base model with one of its candidate templates; `<task>/…` with its best.
- `<task>/variance/items` and `/sampling` are the two parts of the variance of the checkpoint's accuracy.
- `source` is the file that the number was read from: the sentinel of the node's owner. An arm that uses the
  base arm's checkpoint has its own rows, which name the base arm's file.

The nodes come from the graph, never from the files on disk; a missing file gives no rows.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from analysis.numbers import coverage, curve_metrics, frontiers
from analysis.numbers.run import Row, Run, read_json, read_rows
from encore.recipe.document import Document
from encore.recipe.graph import Node
from encore.recipe.metric_names import by_template

COLUMNS = [
    "recipe",
    "scale",
    "arm",
    "seed",
    "node",
    "step",
    "metric",
    "value",
    "low",
    "high",
    "source",
]
NUMBERS = ["step", "value", "low", "high"]
POINTS = 100  # largest number of points of a curve; if it has more, neighbouring steps are averaged
MEASURED = ["seed", "value", "low", "high", "source"]


def collect(run: Run) -> pd.DataFrame:
    """Return the tidy table of a run."""
    named = run.document.metrics
    cache: dict[Node, pd.DataFrame] = {}
    read: dict[Node, list[Row]] = {}
    parts = []
    for arm in run.arms:
        for seed in run.seeds:
            if len(covered := coverage.rows(run, arm, seed, read)):
                parts.append(covered.assign(recipe=run.name, scale=run.scale, arm=arm, seed=seed))
            for node in run.nodes(arm, seed):
                if node not in cache:
                    cache[node] = _numbers(run, node, named)
                if len(cache[node]):
                    parts.append(cache[node].assign(recipe=run.name, scale=run.scale, arm=arm, seed=seed))
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
    return with_frontiers(run.document, table[COLUMNS].astype(dict.fromkeys(NUMBERS, float)))


def with_frontiers(document: Document, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a run, with the rows of the recipe's frontiers added."""
    derived = frontiers.rows(document, table)
    return pd.concat([table, derived], ignore_index=True) if len(derived) else table


def _numbers(run: Run, node: Node, named: list[str]) -> pd.DataFrame:
    """Return the rows of one job, with the columns node to source; empty if the job has no result.

    `named` are the metrics that the recipe names.
    """
    record = read_json(run.sentinel(node))
    if record is None:
        return pd.DataFrame()
    curve = pd.DataFrame(columns=["step", "metric", "value"])
    checkpoint, step = run.graph.measured(node)
    if node.kind == "eval":
        rows = [{"metric": name, "step": step} | number for name, number in _evaluated(record["tasks"])]
    else:
        metrics = record.get("metrics", {})
        path = run.folder(node) / "curve.csv"
        if path.exists():
            curve = _with_costs(run, node, read_rows(path, ["step", "value"]))
            of_recipe = named if node.recipe == run.name else []
            metrics = metrics | curve_metrics.of_curve(curve, of_recipe, record.get("kind") == "ppo")
        rows = [{"metric": metric, "value": value} for metric, value in metrics.items()]
    final = pd.DataFrame(rows, columns=["step", "metric", "value", "low", "high"])
    numbers = [frame.reindex(columns=final.columns) for frame in (final, curve) if len(frame)]
    typed = [frame.astype(dict.fromkeys(NUMBERS, float)) for frame in numbers]
    joined = pd.concat(typed, ignore_index=True) if typed else final
    return joined.assign(node=run.label(node) if step is None else checkpoint, source=node.sentinel)


def _with_costs(run: Run, node: Node, curve: pd.DataFrame) -> pd.DataFrame:
    """Return the curve of a stage together with the curves of what its training has cost."""
    provenance = read_json(run.folder(node) / "provenance.json") or {}
    times = run.folder(node) / "timing.csv"
    timing = read_rows(times, ["step", "value"]) if times.exists() else curve.iloc[:0]
    flops, training_flops = (provenance.get(name) or 0.0 for name in ("flops", "training_flops"))
    return pd.concat([curve, curve_metrics.spent(curve, timing, flops, training_flops)])


def _evaluated(tasks: Row) -> Iterator[tuple[str, Row]]:
    """Yield metric and number (value, low, high) of each task in the result of an evaluation."""
    for task, measured in tasks.items():
        for metric, number in measured["metrics"].items():
            yield f"{task}/{metric}", number
        for template, values in measured.get("templates", {}).items():
            for metric, number in values["metrics"].items():
                yield f"{by_template(task, template)}/{metric}", number
        for part, value in measured.get("variance", {}).items():
            yield f"{task}/variance/{part}", {"value": value}


def final(table: pd.DataFrame) -> pd.DataFrame:
    """Return the final numbers: the rows of the table that do not belong to a learning curve."""
    return table[table.step.isna()]


def measured(table: pd.DataFrame, at: str, metric: str) -> pd.DataFrame:
    """Return the final numbers of `metric` at `at`, an `arm/node`: value, low, high, source, a row a seed."""
    arm, _, node = at.partition("/")
    rows = (table.metric == metric) & (table.arm == arm) & (table.node == node) & table.step.isna()
    return table.loc[rows, MEASURED].set_index("seed").sort_index()


def curves(table: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Return the learning-curve rows of these metrics."""
    return table[table.step.notna() & table.metric.isin(list(metrics))]


def binned(rows: pd.DataFrame | None, points: int = POINTS) -> pd.DataFrame:
    """Return the values of one curve, a row for each step and a column for each seed.

    Neighbouring steps are averaged, so that there are at most `points` rows.
    """
    if rows is None:
        return pd.DataFrame()
    wide = rows.groupby(["step", "seed"]).value.mean().unstack()
    if len(wide) <= points:
        return wide
    bins = np.arange(len(wide)) * points // len(wide)
    steps = wide.index.to_series().groupby(bins).mean()
    return wide.groupby(bins).mean().set_index(steps.to_numpy())
