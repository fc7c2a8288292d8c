"""The quality of a reward model: its accuracy, calibration and length bias on labelled comparisons.

The functions take plain arrays over pairs. `gap` is the reward of the response that the labeller prefers
minus the reward of the other response.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from encore.data.preferences import better_worse
from encore.data.token_ids import Row, Sequences

Array = np.ndarray
BINS = 10  # number of bins of the calibration curve, between 0.5 and 1
QUARTERS = 4  # number of groups of pairs, ordered by the difference of the labeller's scores


@dataclass(frozen=True)
class Measured:
    """The rewards of a split's responses, and the differences over its pairs, each better minus worse."""

    rewards: np.ndarray  # (responses,)
    lengths: np.ndarray  # (responses,): number of tokens, prompt included
    prompt: np.ndarray  # (responses,): number of the prompt's row
    gap: np.ndarray  # (pairs,): difference of the rewards
    margin: np.ndarray  # (pairs,): difference of the labeller's scores
    longer: np.ndarray  # (pairs,): difference of the lengths
    pair_prompt: np.ndarray  # (pairs,): number of the prompt's row


def measured(rows: Sequence[Row], sequences: Sequence[Sequences], rewards: np.ndarray) -> Measured:
    """Return the arrays from which the metrics are computed.

    `rewards` (responses,) has the rewards of all `sequences`, one row after another.
    """
    lengths = np.array([len(sequence) for of in sequences for sequence in of], dtype=float)
    prompt = np.array([number for number, of in enumerate(sequences) for _ in of], dtype=int)
    better, worse, margin, pair_prompt, start = [], [], [], [], 0
    for number, row in enumerate(rows):
        for i, j in better_worse(row):
            better.append(start + i)
            worse.append(start + j)
            margin.append(row["scores"][i] - row["scores"][j])
            pair_prompt.append(number)
        start += len(row["responses"])
    return Measured(
        rewards,
        lengths,
        prompt,
        rewards[better] - rewards[worse],
        np.array(margin, dtype=float),
        lengths[better] - lengths[worse],
        np.array(pair_prompt, dtype=int),
    )


def report(splits: Mapping[str, Sequence[Measured]]) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Return metrics of the splits `train` and `validation`, and the calibration curve of `validation`.

    A split has an entry for each member; the metrics measure the mean reward of the members. Without pairs in
    `validation` there are only the accuracy and the loss on `train`.
    """
    metrics: dict[str, float] = {}
    means = {
        name: replace(of[0], rewards=_mean(of, "rewards"), gap=_mean(of, "gap"))
        for name, of in splits.items()
    }
    for name, split in means.items():
        if len(split.gap):
            metrics |= {f"accuracy/{name}": accuracy(split.gap), f"loss/{name}": loss(split.gap)}
    held_out = means["validation"]
    if not len(held_out.gap):
        return metrics, []
    rows = calibration(held_out.gap)
    metrics["accuracy/gap"] = metrics["accuracy/train"] - metrics["accuracy/validation"]
    metrics["accuracy/validation_se"] = standard_error(held_out.gap, held_out.pair_prompt)
    metrics["calibration/error"] = calibration_error(rows)
    if len(splits["validation"]) > 1:
        accuracies = [accuracy(member.gap) for member in splits["validation"]]
        metrics["members/accuracy_mean"] = float(np.mean(accuracies))
        metrics["members/accuracy_std"] = float(np.std(accuracies, ddof=1))
    return metrics | by_margin(held_out.gap, held_out.margin) | length_bias(held_out), rows


def spread(
    raw: Mapping[str, Sequence[Array]], bias: Sequence[float], scale: Sequence[float]
) -> dict[str, float]:
    """Return mean and standard deviation of the final rewards, and how much the members disagree.

    A final reward is (score - bias) / scale. `raw` maps `train`, `validation` and `demonstrations` to the
    scores of each member, (sequences,).
    """
    final = {
        name: (np.stack(of) - np.array(bias)[:, None]) / np.array(scale)[:, None] for name, of in raw.items()
    }  # scores (members, sequences)
    metrics = {"bias": float(np.mean(bias)), "scale": float(np.mean(scale))}
    metrics |= {f"reward/{name}": float(of.mean()) for name, of in final.items() if of.size}
    metrics["reward/std"] = float(final["train"].mean(axis=0).std())
    if len(bias) > 1:
        metrics["members/disagreement"] = float(final["train"].std(axis=0, ddof=1).mean())
    return metrics


def accuracy(gap: Array) -> float:
    """Return the share of pairs that the model ranks as the labeller does.

    A pair of equal rewards counts half.
    """
    return float(np.mean((gap > 0) + 0.5 * (gap == 0)))


def loss(gap: Array) -> float:
    """Return the mean of -log sigmoid(gap), in nats."""
    return float(np.mean(np.logaddexp(0.0, -gap)))


def standard_error(gap: Array, prompt: Array) -> float:
    """Return the standard error of `accuracy`, clustered by the `prompt` (pairs,) that a pair belongs to."""
    right = (gap > 0) + 0.5 * (gap == 0)
    _, place, count = np.unique(prompt, return_inverse=True, return_counts=True)
    if len(count) < 2:
        return 0.5  # the largest possible standard error, if nothing can be estimated
    residual = np.bincount(place, weights=right - right.mean())
    return float(np.sqrt(len(count) / (len(count) - 1) * np.sum(residual**2)) / len(gap))


def by_margin(gap: Array, margin: Array) -> dict[str, float]:
    """Return accuracy and mean margin in each quarter of the pairs, sorted by `margin`; q1 has the closest.

    The result is empty if all margins are equal, as in a data set that says only which response is better.
    """
    if len(gap) < QUARTERS or np.ptp(margin) == 0:
        return {}
    metrics = {}
    for number, part in enumerate(np.array_split(np.argsort(margin, kind="stable"), QUARTERS), start=1):
        metrics[f"accuracy/margin=q{number}"] = accuracy(gap[part])
        metrics[f"margin/q{number}"] = float(margin[part].mean())
    return metrics


def calibration(gap: Array) -> list[dict[str, float]]:
    """Return the calibration curve: the model's confidence against how often it agrees with the labeller.

    The confidence in a pair is sigmoid(|gap|), from 0.5 to 1. `predicted` and `observed` are means over the
    pairs of a bin. A bin without pairs has no row.
    """
    confidence = 1 / (1 + np.exp(-np.abs(gap)))
    right = (gap > 0) + 0.5 * (gap == 0)
    edges = np.linspace(0.5, 1.0, BINS + 1)
    place = np.clip(np.digitize(confidence, edges) - 1, 0, BINS - 1)
    return [
        {
            "bin_low": float(edges[i]),
            "bin_high": float(edges[i + 1]),
            "predicted": float(confidence[place == i].mean()),
            "observed": float(right[place == i].mean()),
            "count": int((place == i).sum()),
        }
        for i in range(BINS)
        if (place == i).any()
    ]


def calibration_error(rows: Sequence[dict[str, float]]) -> float:
    """Return the expected calibration error: the mean of |predicted - observed| over the pairs."""
    total = sum(row["count"] for row in rows)
    return sum(row["count"] * abs(row["predicted"] - row["observed"]) for row in rows) / total


def length_bias(split: Measured) -> dict[str, float]:
    """Measure how much the reward prefers length; metrics that cannot be measured are left out.

    They are the accuracy on pairs with a longer worse response, and on pairs with a longer better response;
    how often reward and labels prefer the longer response; and the correlation of reward and length within
    prompts.
    """
    gap, longer, metrics = split.gap, split.longer, {}
    for name, part in (("worse", longer < 0), ("better", longer > 0)):
        if part.any():
            metrics[f"accuracy/longer_is_{name}"] = accuracy(gap[part])
    unequal = longer != 0
    if unequal.any():
        metrics["length/preferred"] = accuracy(np.sign(longer[unequal]) * gap[unequal])
        metrics["length/preferred_by_labels"] = float((longer[unequal] > 0).mean())
    rewards, lengths = _within(split.rewards, split.prompt), _within(split.lengths, split.prompt)
    if rewards.std() > 0 and lengths.std() > 0:
        metrics["length/correlation"] = float(np.corrcoef(rewards, lengths)[0, 1])
    return metrics


def _within(values: Array, group: Array) -> Array:
    """Return `values` minus the mean of their group."""
    _, place = np.unique(group, return_inverse=True)
    means = np.bincount(place, weights=values) / np.bincount(place)
    return values - means[place]


def _mean(members: Sequence[Measured], name: str) -> Array:
    return np.mean([getattr(member, name) for member in members], axis=0)


def text(rows: Sequence[dict[str, Any]]) -> str:
    """Return the text of calibration.csv."""
    out = io.StringIO()
    names = ["bin_low", "bin_high", "predicted", "observed", "count"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: repr(value) for name, value in row.items()} for row in rows)
    return out.getvalue()
