"""The metrics of one task, each with a 95% interval, from its rows of samples."""

from typing import Any

import numpy as np

from evals.best_of_n import best_of_n
from evals.passk import Floats, interval, majority_at_k, pass_at_k, resamples, variance

Row = dict[str, Any]


def summary(rows: list[Row], k: tuple[int, ...]) -> dict[str, Any]:
    """{"items", "samples", "metrics": {name: {"value", "low", "high"}}, "variance": {"items", "sampling"}}.

    Lengths are in generated tokens, the end-of-sequence token included. A metric over nothing (the length of
    right answers when none is right) has the value None.
    """
    resampled = resamples(len(rows))
    metrics = {}
    for name, (numerator, denominator) in ratios(rows, k).items():
        value, low, high = interval(numerator, denominator, resampled)
        metrics[name] = {"value": _number(value), "low": _number(low), "high": _number(high)}
    correct = np.array([row["correct"] for row in rows], dtype=bool)
    return {
        "items": len(rows),
        "samples": correct.shape[1],
        "metrics": metrics,
        "variance": variance(correct),
    }


def ratios(rows: list[Row], k: tuple[int, ...]) -> dict[str, tuple[Floats, Floats]]:
    """Metric -> (numerator, denominator), each (items,): the metric is the ratio of their sums."""
    correct = np.array([row["correct"] for row in rows], dtype=bool)  # (items, samples)
    tokens = np.array([row["tokens"] for row in rows], dtype=float)
    formatted = np.array([row["formatted"] for row in rows], dtype=float)
    truncated = np.array([row["truncated"] for row in rows], dtype=float)
    votes = [row["votes"] for row in rows]
    ones = np.ones(len(rows))
    found = {"accuracy": (correct.mean(axis=1), ones)}
    found |= {f"pass@{n}": (pass_at_k(correct, n), ones) for n in k}
    found |= {f"maj@{n}": (majority_at_k(correct, votes, n), ones) for n in k}
    found |= {
        "format_rate": (formatted.mean(axis=1), ones),
        "truncation_rate": (truncated.mean(axis=1), ones),
        "length": (tokens.mean(axis=1), ones),
        "length_correct": ((tokens * correct).sum(axis=1), correct.sum(axis=1).astype(float)),
        "length_incorrect": ((tokens * ~correct).sum(axis=1), (~correct).sum(axis=1).astype(float)),
        "distinct_answers": (np.array([float(len(set(row) - {None})) for row in votes]), ones),
    }
    difficulties = np.array([-1 if row["difficulty"] is None else row["difficulty"] for row in rows])
    for difficulty in sorted(set(difficulties.tolist()) - {-1}):
        there = (difficulties == difficulty).astype(float)
        found[f"accuracy/difficulty={difficulty}"] = (correct.mean(axis=1) * there, there)
        found[f"length/difficulty={difficulty}"] = (tokens.mean(axis=1) * there, there)
    return found | {name: (values, ones) for name, values in preference(rows, k).items()}


def preference(rows: list[Row], k: tuple[int, ...]) -> dict[str, Floats]:
    """Metric -> (items,) of what evals/preference.py has scored: gold, win_rate, proxy, kl, best-of-n.

    A win is a sample whose gold is above that of the world's own reply; a tie is half of one.
    """
    scored = {
        name: np.array([row[name] for row in rows], dtype=float)  # (items, samples)
        for name in ("gold", "proxy", "logratio")
        if name in rows[0]
    }
    found = {}
    if "gold" in scored:
        rival = np.array([[row["reference_gold"]] for row in rows])  # (items, 1)
        found["gold"] = scored["gold"].mean(axis=1)
        found["win_rate"] = ((scored["gold"] > rival) + 0.5 * (scored["gold"] == rival)).mean(axis=1)
    if "proxy" in scored:
        found["proxy"] = scored["proxy"].mean(axis=1)
        for name in ("gold", "proxy"):
            if name in scored:
                found |= {f"{name}/bon@{n}": best_of_n(scored[name], scored["proxy"], n) for n in k}
    if "logratio" in scored:
        found["kl"] = scored["logratio"].mean(axis=1)
    return found


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
