"""The problems that a checkpoint solves and the checkpoint `before` does not, and the reverse.

The numbers exist for a recipe with `coverage: before`. They compare an arm's checkpoint `before` with each
other checkpoint X of the arm, on each task that both were asked, and are final numbers of X. A problem is
solved if one of its n samples is right.

- `TASK/both`, `TASK/gained`, `TASK/lost`, `TASK/neither`: the shares of problems that both solve, only X
  solves, only `before` solves, neither solves; they add up to 1. `TASK/gained_by_chance` is what `before`
  gains on itself: the mean share of problems that half of its samples solve and the other half does not.
- `TASK/crossover` is the k at which `before` overtakes X in pass@k, interpolated between measured k on a log
  axis; nan unless X leads at the smallest k, and `before` at the largest. `TASK/crossed` is the share of
  resamples of the problems in which the curves cross in this way.
- `TASK/ahead`, `TASK/behind`: the shares of problems on which X is right more often than `before`, and less
  often. The two curves of a single problem never cross, because its pass@k depends only on the number of
  right samples. A crossover of the means comes from the problems on which X is behind.
- `TASK/familiar`, if the task scores perplexity: the share of the right samples of X whose perplexity under
  the reference model does not exceed the 95% quantile for the right samples of `before`.

Intervals are percentile bootstraps over problems, which are the same for both checkpoints.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from analysis.numbers.run import Row, Run
from encore.recipe.graph import Node
from encore.recipe.metric_names import COVERED, FAMILIAR
from evals.passk import Bools, Floats, interval, pass_at_k, resamples

READ = ("task", "item", "question", "correct", "perplexity")  # columns of a row that the comparison reads
USUAL = 0.95  # share of the right samples of `before` that a familiar sample's perplexity may not exceed
Number = dict[str, float]  # an entry with value, low and high


@dataclass(frozen=True)
class Pair:
    """The samples of one task at both checkpoints, (problems, samples) each, of the same problems."""

    before: Bools
    after: Bools
    perplexity_before: Floats | None = None
    perplexity_after: Floats | None = None


def rows(run: Run, arm: str, seed: int, read: dict[Node, list[Row]]) -> pd.DataFrame:
    """Return the coverage numbers of one arm and seed, as rows of numbers.table without arm and seed.

    `read` caches the samples of evaluations.
    """
    evaluations = {node.name: node for node in run.nodes(arm, seed) if node.kind == "eval"}
    base = evaluations.get(run.document.coverage or "")
    others = [evaluations[name] for name in run.checkpoints(arm) if name in evaluations]
    others = [node for node in others if node != base]
    if base is None or not others:
        return pd.DataFrame()
    parts = []
    for node in others:
        ks = {name: task.k for name, task in run.graph.evaluation(node).tasks.items()}
        metrics = compared(_samples(run, base, read), _samples(run, node, read), ks)
        numbers = [{"metric": name} | number for name, number in metrics.items()]
        parts.append(pd.DataFrame(numbers).assign(node=run.label(node), source=node.sentinel, step=math.nan))
    return pd.concat(parts, ignore_index=True)


def _samples(run: Run, node: Node, read: dict[Node, list[Row]]) -> list[Row]:
    """Return the rows of an evaluation's samples with the columns READ, without the long texts."""
    if node not in read:
        read[node] = [{key: row[key] for key in READ if key in row} for row in run.samples(node)]
    return read[node]


def compared(
    before: Sequence[Row], after: Sequence[Row], ks: Mapping[str, Sequence[int]]
) -> dict[str, Number]:
    """Return metric -> number, from the samples of two evaluations; `ks`: task -> its values of k.

    Left out are tasks without a verifier, and tasks for which the evaluations share no problem.
    """
    metrics: dict[str, Number] = {}
    for task, k in ks.items():
        pair = _pair([row for row in before if row["task"] == task], [r for r in after if r["task"] == task])
        if pair is not None and k:
            metrics |= {f"{task}/{name}": number for name, number in coverage(pair, k)}
    return metrics


def _pair(before: Sequence[Row], after: Sequence[Row]) -> Pair | None:
    """Return the samples of one task on the problems that both evaluations asked; None if there are none."""
    theirs, ours = (
        {row["item"]: row for row in rows if row["correct"][0] is not None} for rows in (before, after)
    )
    items = [item for item in ours if item in theirs and ours[item]["question"] == theirs[item]["question"]]
    if not items:
        return None
    scored = "perplexity" in ours[items[0]] and "perplexity" in theirs[items[0]]
    correct = [np.array([rows[item]["correct"] for item in items], dtype=bool) for rows in (theirs, ours)]
    perplexity = [
        np.array([rows[item]["perplexity"] for item in items], dtype=float) if scored else None
        for rows in (theirs, ours)
    ]
    return Pair(*correct, *perplexity)


def coverage(pair: Pair, ks: Sequence[int]) -> Iterator[tuple[str, Number]]:
    """Yield each coverage metric of one task with its number.

    A k that exceeds the number of samples of either checkpoint is left out.
    """
    n = min(pair.before.shape[1], pair.after.shape[1])
    resampled, ones = resamples(len(pair.before)), np.ones(len(pair.before))

    def share(values: Floats, of: Floats = ones) -> Number:
        return dict(zip(("value", "low", "high"), interval(values, of, resampled), strict=True))

    base, other = (pass_at_k(side, n) for side in (pair.before, pair.after))
    rates = (pair.before.mean(axis=1), pair.after.mean(axis=1))
    crossing = _crossing(pair, sorted(k for k in {*ks} if k <= n) or [n], resampled)
    values = {
        "both": share(base * other),
        "gained": share((1 - base) * other),
        "lost": share(base * (1 - other)),
        "neither": share((1 - base) * (1 - other)),
        "gained_by_chance": share(_by_chance(pair.before)),
        **crossing,
        "ahead": share((rates[1] > rates[0]).astype(float)),
        "behind": share((rates[1] < rates[0]).astype(float)),
    }
    yield from ((name, values[name]) for name in COVERED)
    if pair.perplexity_before is not None and pair.perplexity_after is not None and pair.before.any():
        usual = np.quantile(pair.perplexity_before[pair.before], USUAL)
        right = pair.after.sum(axis=1).astype(float)
        within = ((pair.perplexity_after <= usual) & pair.after).sum(axis=1).astype(float)
        yield FAMILIAR, share(within, right)


def _by_chance(correct: Bools) -> Floats:
    """Return the probability (problems,) that a random half of the samples solves a problem, the rest not."""
    n = correct.shape[1] // 2 * 2
    if not n:
        return np.zeros(len(correct))
    half = pass_at_k(correct[:, :n], n // 2)
    # problems that at least one half solves, minus problems that the first half solves
    return correct[:, :n].any(axis=1) - half


def _crossing(pair: Pair, ks: Sequence[int], resampled: Floats) -> dict[str, Number]:
    """Return the metrics `crossover` (a k, with its interval) and `crossed` (a share of the resamples)."""
    curves = [np.stack([pass_at_k(side, k) for k in ks], axis=1) for side in (pair.before, pair.after)]
    items = len(pair.before)
    before, after = (resampled @ side / items for side in curves)  # (resamples, ks)
    crossings = [passing(ks, b, a) for b, a in zip(before, after, strict=True)]
    crossed = [k for k in crossings if k is not None]
    at = passing(ks, curves[0].mean(axis=0), curves[1].mean(axis=0))
    spread = np.quantile(crossed, [0.025, 0.975]) if crossed and at is not None else (math.nan, math.nan)
    return {
        "crossover": {
            "value": math.nan if at is None else at,
            "low": float(spread[0]),
            "high": float(spread[1]),
        },
        "crossed": {"value": len(crossed) / len(crossings), "low": math.nan, "high": math.nan},
    }


def passing(ks: Sequence[int], before: Sequence[float], after: Sequence[float]) -> float | None:
    """Return the k at which pass@k of `before` overtakes `after`; both have a value for each of `ks`.

    The result is None unless `after` leads at the first k and `before` at the last.
    """
    if not (after[0] > before[0] and before[-1] > after[-1]):
        return None
    return crossing(ks, before, after)


def crossing(ks: Sequence[float], before: Sequence[float], after: Sequence[float]) -> float | None:
    """Return the first k at which the two curves cross; None if they do not.

    Between measured k the curves are straight on a log axis of k. Curves that only touch do not cross. Curves
    that coincide for a while, and then part with the other one ahead, cross where they meet.
    """
    gaps = [a - b for b, a in zip(before, after, strict=True)]
    apart = [i for i, gap in enumerate(gaps) if gap]
    for i, j in pairwise(apart):
        if gaps[i] * gaps[j] < 0:
            left, right = math.log(ks[i]), math.log(ks[i + 1])
            return math.exp(left + (right - left) * gaps[i] / (gaps[i] - gaps[i + 1]))
    return None
