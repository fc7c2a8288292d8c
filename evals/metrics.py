"""The metrics of one task, each with a 95% interval, from its rows of samples."""

from typing import Any

import numpy as np

from encore.recipe.metric_names import AMONG, BY_ANSWER, OF_WORLD, SELECTORS, best_of
from evals.best_of_n import best_of_n
from evals.passk import Bools, Floats, interval, majority_at_k, pass_at_k, resamples, variance

Row = dict[str, Any]
# scores whose mean over all samples is a metric
MEANS = ("perplexity", "trace", *(name for name in OF_WORLD if name not in AMONG))
DIGITS = 9  # decimals that count when scores are compared, so that rounding errors decide nothing


def summary(rows: list[Row], k: tuple[int, ...]) -> dict[str, Any]:
    """Return the summary of a task's rows. Lengths are in tokens and include the end of sequence.

    It is {"items", "samples", "metrics": {name: {"value", "low", "high"}}, "variance": {"items",
    "sampling"}}. The variance and the metrics of right answers are left out if nothing verifies the task. The
    metrics of samples are left out if likelihoods are scored without samples: only accuracy and score remain.
    A metric over nothing, such as the length of right answers if none is right, is None.
    """
    resampled = resamples(len(rows))
    metrics = {}
    for name, (numerator, denominator) in ratios(rows, k).items():
        value, low, high = interval(numerator, denominator, resampled)
        metrics[name] = {"value": _number(value), "low": _number(low), "high": _number(high)}
    result = {"items": len(rows), "samples": len(rows[0]["correct"]), "metrics": metrics}
    return result | ({"variance": variance(_correct(rows))} if _verified(rows) else {})


def ratios(rows: list[Row], k: tuple[int, ...]) -> dict[str, tuple[Floats, Floats]]:
    """Return metric -> (numerator, denominator), each (items,); the metric is the ratio of their sums."""
    ones = np.ones(len(rows))
    tokens = np.array([row["tokens"] for row in rows], dtype=float)  # (items, samples)
    metrics = right(rows, k, tokens) if _verified(rows) else {}
    if "scores" in rows[0]:
        metrics["score"] = _score(rows)
    if not tokens.size:  # likelihoods were scored, and no samples drawn
        return metrics
    formatted = np.array([row["formatted"] for row in rows], dtype=float)
    truncated = np.array([row["truncated"] for row in rows], dtype=float)
    metrics |= {
        "format_rate": (formatted.mean(axis=1), ones),
        "truncation_rate": (truncated.mean(axis=1), ones),
        "length": (tokens.mean(axis=1), ones),
    }
    if "calls" in rows[0]:
        metrics |= _of_tool(rows)
    metrics |= {name: _among(rows, name, which) for name, which in AMONG.items() if name in rows[0]}
    for difficulty, has_it in _difficulties(rows).items():
        metrics[f"length/difficulty={difficulty}"] = (tokens.mean(axis=1) * has_it, has_it)
    return metrics | {name: (values, ones) for name, values in scores(rows, k).items()}


def _of_tool(rows: list[Row]) -> dict[str, tuple[Floats, Floats]]:
    """Return numerators and denominators of the metrics of a tool.

    They are calls per sample, the share of samples with a call, and the share of malformed calls.
    """
    calls, malformed = (np.array([row[name] for row in rows], dtype=float) for name in ("calls", "malformed"))
    ones = np.ones(len(rows))
    return {
        "calls": (calls.mean(axis=1), ones),
        "called": ((calls > 0).mean(axis=1), ones),
        "malformed": (malformed.sum(axis=1), calls.sum(axis=1)),
    }


def _among(rows: list[Row], name: str, which: str) -> tuple[Floats, Floats]:
    """Return numerator and denominator of the mean of score `name` over samples whose score `which` is 1."""
    values, counts = (np.array([row[score] for row in rows], dtype=float) for score in (name, which))
    return (values * counts).sum(axis=1), counts.sum(axis=1)


def _verified(rows: list[Row]) -> bool:
    """Return whether something has judged these rows right or wrong."""
    return rows[0]["correct"][0] is not None


def right(rows: list[Row], k: tuple[int, ...], tokens: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Return the metrics of right and wrong answers; `tokens` (items, samples), empty if nothing is drawn."""
    correct = _correct(rows)
    votes = [row["votes"] for row in rows]
    ones = np.ones(len(rows))
    metrics = {"accuracy": (correct.mean(axis=1), ones)}
    metrics |= {f"pass@{n}": (pass_at_k(correct, n), ones) for n in k}
    metrics |= {f"maj@{n}": (majority_at_k(correct, votes, n), ones) for n in k}
    if not tokens.size:
        return metrics
    metrics |= {
        **_by_answer("length", tokens, correct),
        "distinct_answers": (np.array([float(len(set(row) - {None})) for row in votes]), ones),
    }
    for name in BY_ANSWER:
        if name in rows[0]:
            metrics |= _by_answer(name, np.array([row[name] for row in rows]), correct)
    for difficulty, has_it in _difficulties(rows).items():
        metrics[f"accuracy/difficulty={difficulty}"] = (correct.mean(axis=1) * has_it, has_it)
    return metrics


def _by_answer(name: str, values: Floats, correct: Bools) -> dict[str, tuple[Floats, Floats]]:
    """Return numerators and denominators of the means of `values` over right and over wrong samples.

    Both arrays are (items, samples).
    """
    return {
        f"{name}_{side}": ((values * of).sum(axis=1), of.sum(axis=1).astype(float))
        for side, of in (("correct", correct), ("incorrect", ~correct))
    }


def _score(rows: list[Row]) -> tuple[Floats, Floats]:
    """Return numerator and denominator of the mean of lm-eval's metric over all parts of all samples."""
    parts = [[part for sample in row["scores"] for part in sample] for row in rows]
    return np.array([sum(each) for each in parts]), np.array([float(len(each)) for each in parts])


def _correct(rows: list[Row]) -> Bools:
    """Return whether each sample is correct, (items, samples)."""
    return np.array([row["correct"] for row in rows], dtype=bool)


def _difficulties(rows: list[Row]) -> dict[int, Floats]:
    """Return difficulty -> (items,): 1 if an item has this difficulty, else 0."""
    of = np.array([-1 if row["difficulty"] is None else row["difficulty"] for row in rows])
    return {value: (of == value).astype(float) for value in sorted(set(of.tolist()) - {-1})}


def scores(rows: list[Row], k: tuple[int, ...]) -> dict[str, Floats]:
    """Return metric -> (items,) from the scores of evals/scores.py: means, win_rate, kl and best-of-n.

    A sample wins if its gold is above the gold of the world's own reply, or if a judge prefers it to the data
    set's reply; a tie counts half.
    """
    scored = {
        name: np.round(np.array([row[name] for row in rows], dtype=float), DIGITS)  # (items, samples)
        for name in ("gold", "judge", "order_flips", "logratio", "forward_logratio", *SELECTORS, *MEANS)
        if name in rows[0]
    }
    metrics = {}
    if "gold" in scored:
        rival = np.round(np.array([[row["reference_gold"]] for row in rows]), DIGITS)  # (items, 1)
        metrics["gold"] = scored["gold"].mean(axis=1)
        metrics["win_rate"] = ((scored["gold"] > rival) + 0.5 * (scored["gold"] == rival)).mean(axis=1)
    if "judge" in scored:
        metrics["win_rate"] = ((scored["judge"] > 0.5) + 0.5 * (scored["judge"] == 0.5)).mean(axis=1)
        metrics["order_flips"] = scored["order_flips"].mean(axis=1)
    if SELECTORS.keys() & scored.keys():
        metrics |= {name: scored[name].mean(axis=1) for name in SELECTORS if name in scored}
        values = scored | ({"accuracy": _correct(rows).astype(float)} if _verified(rows) else {})
        for selector, value, best in best_of(scored, _verified(rows)):
            metrics |= {f"{best}@{n}": best_of_n(values[value], scored[selector], n) for n in k}
    if "logratio" in scored:
        metrics["kl"] = scored["logratio"].mean(axis=1)
    if "forward_logratio" in scored:
        metrics["forward_kl"] = scored["forward_logratio"].mean(axis=1)
    return metrics | {name: scored[name].mean(axis=1) for name in MEANS if name in scored}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
