"""The meaning of a report's intervals, what they leave out, and the causes of the variance of accuracy."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.means import DASH, average, number
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.statistics.intervals import RANGE, covers
from encore.recipe.graph import Node

BASE, PROBLEMS = "base model", "problems"  # parts of a run that seeds may share


def fixed(run: Run) -> str:
    """Return a phrase on what all seeds share, whose variation the intervals therefore leave out."""
    kept = common(run)
    if kept:
        return "for " + " and ".join(f"{'this' if part == BASE else 'these'} {part}" for part in kept)
    return "each seed with a base model and problems of its own"


def scope(run: Run) -> str:
    """Return a sentence on which variation an interval over seeds includes, and which it leaves out."""
    kept = common(run)
    if not kept:
        return (
            "Intervals over seeds are about the whole way from pretraining on: every seed has a base model, "
            "training and held-out problems of its own."
        )
    verbs = {BASE: f"starts from the same {BASE}", PROBLEMS: f"answers the same {PROBLEMS}"}
    others = {BASE: BASE, PROBLEMS: "set of problems"}
    same = " and ".join(verbs[part] for part in kept)
    other = others[kept[0]] if len(kept) == 1 else "base model or other problems"
    return (
        f"Intervals over seeds are {fixed(run)}: every seed {same}, so how another {other} would change a "
        "number is not in them."
    )


def common(run: Run) -> tuple[str, ...]:
    """Return which parts all seeds of a run share: BASE, PROBLEMS, both or neither."""
    first = run.nodes(run.arms[0], run.seeds[0])
    anew = any(run.graph.drawn_tasks(node) for node in first if node.kind == "eval")
    return (BASE,) * shares_base(run) + (PROBLEMS,) * (not anew)


def shares_base(run: Run) -> bool:
    """Return whether all seeds of the first arm start from the same model.

    It may be a stage that is pinned to one seed, or a model from outside.
    """
    grids = [run.nodes(run.arms[0], seed) for seed in run.seeds_of(run.arms[0])]
    stages = [{node for node in grid if node.kind == "stage"} for grid in grids]
    pinned = set.intersection(*stages) if len(stages) > 1 else set()
    return bool(pinned) or any(run.graph.model_of(node) for node in stages[0])


def intervals(n: int) -> str:
    """Return the beginning of a sentence on what the intervals of a page are, for a run of n seeds."""
    if n < 2:
        return "Intervals are 95%, over problems"
    if n > RANGE:
        return "Intervals are 95%: over seeds"
    return (
        f"Intervals over seeds are the range of {n} seeds, which holds the truth in about {covers(n):.0%} of "
        "cases, not in 95%"
    )


def parts(run: Run, table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each accuracy in `rows`, a table of levels.levels().

    It has the standard error, and the share of each of the components() in its square, as text.
    """
    shown = []
    read: dict[Node, dict[str, dict[Any, float]]] = {}
    for row in rows.to_dict("records"):
        at, task = f"{row['arm']}/{row['checkpoint']}", row["task"]
        items, sampling = (
            average(measured(table, at, f"{task}/variance/{part}")).value for part in ("items", "sampling")
        )
        models = measured(table, at, f"{task}/accuracy").drop_duplicates("source").value.dropna()
        if math.isnan(items) or not len(models):
            continue
        rates = _rates(run, row["arm"], row["checkpoint"], task, read)
        crossed = task not in run.graph.drawn_tasks(run.evaluation(row["arm"], row["checkpoint"]))
        squares = components(models.tolist(), items, sampling, rates if crossed else None)
        total = sum(squares.values())
        shares = {name: f"{square / total:.0%}" if total else DASH for name, square in squares.items()}
        error = number(math.sqrt(total))
        shown.append({"checkpoint": tasks.row_name(run, row), "standard error": error} | shares)
    columns = ["checkpoint", "standard error", "problems", "sampling", "seeds"]
    return pd.DataFrame(shown, columns=columns).fillna(DASH)


def components(
    accuracies: Sequence[float], items: float, sampling: float, rates: np.ndarray | None
) -> dict[str, float]:
    """Return the parts of the variance of a mean accuracy over models, which add up to its squared error.

        problems   the choice of problems: if all seeds answer the same problems, no number of seeds
                   averages this part out
        sampling   the random sampling of answers
        seeds      the training of other models (for two models or more): the variance between models
                   minus the variance of sampling

    `accuracies` has a value for each model. `items` and `sampling` are the means over models of
    evals.passk.variance. `rates` (models, items) are the shares of right answers; None if each model was
    asked other problems. The parts are unbiased estimates of a two-way random effects model (without `rates`,
    of problems nested in seeds), except that negative parts are set to 0. With several models, the part of
    the problems is the mean covariance of two models' rates, because `items` also contains which problems a
    single model happens to be better at.
    """
    n = len(accuracies)
    squares = {"problems": items if rates is not None else items / n, "sampling": sampling / n}
    within = sampling if rates is not None else sampling + items
    if n > 1:
        squares["seeds"] = max(float(np.var(accuracies, ddof=1)) - within, 0.0) / n
    if rates is None:
        return squares
    models, count = rates.shape
    if models > 1 and count > 1:
        common = np.cov(rates)[~np.eye(models, dtype=bool)].mean()
        squares["problems"] = max(float(common), 0.0) / count
    return squares


def _rates(
    run: Run, arm: str, checkpoint: str, task: str, read: dict[Node, dict[str, dict[Any, float]]]
) -> np.ndarray:
    """Return the share of right answers (models, items), on the items that all models were asked.

    `read` caches the shares of each evaluation.
    """
    asked = [run.evaluation(arm, checkpoint, seed) for seed in run.seeds]
    nodes = list(dict.fromkeys(run.graph.owner(node) for node in asked))
    for node in nodes:
        if node not in read:
            read[node] = {}
            for row in run.samples(node):
                if row["correct"][0] is not None:  # None if nothing verifies the task
                    read[node].setdefault(row["task"], {})[row["item"]] = float(np.mean(row["correct"]))
    models = [read[node][task] for node in nodes if task in read[node]]
    shared = set.intersection(*map(set, models)) if models else set()
    rates_of_models = [[rates[item] for item in sorted(shared)] for rates in models]
    return np.array(rates_of_models).reshape(len(models), len(shared))
