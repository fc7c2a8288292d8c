"""What a reward model is worth: accuracy, calibration and its liking for length, on comparisons.

Functions of plain arrays over pairs: `gap` is the reward of the better response, as the labeller has it, less
that of the worse.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recipes.data.token_ids import Row, Sequences, pairs

Array = np.ndarray
BINS = 10  # of the calibration curve, between 0.5 and 1
QUARTERS = 4  # of the pairs, by the difference of the labeller's scores


@dataclass(frozen=True)
class Measured:
    """Rewards of a split's responses, and what its pairs say of them."""

    rewards: np.ndarray  # (responses,)
    lengths: np.ndarray  # (responses,): tokens, prompt included
    prompt: np.ndarray  # (responses,): which row
    gap: np.ndarray  # (pairs,): reward of the better less that of the worse
    margin: np.ndarray  # (pairs,): likewise of the labeller's scores
    longer: np.ndarray  # (pairs,): likewise of the lengths
    pair_prompt: np.ndarray  # (pairs,): which row


def measured(rows: Sequence[Row], sequences: Sequence[Sequences], rewards: np.ndarray) -> Measured:
    """`rewards` (responses,): of all `sequences`, row after row."""
    lengths = np.array([len(one) for of in sequences for one in of], dtype=float)
    prompt = np.array([number for number, of in enumerate(sequences) for _ in of], dtype=int)
    better, worse, margin, pair_prompt, start = [], [], [], [], 0
    for number, row in enumerate(rows):
        for i, j in pairs(row):
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
    """Metrics of the splits `train` and `validation`, and the calibration curve of the latter.

    Each split is given by every member; measured is their mean reward. Without held-out pairs there are only
    the accuracy and loss of `train`.
    """
    found: dict[str, float] = {}
    means = {
        name: replace(of[0], rewards=_mean(of, "rewards"), gap=_mean(of, "gap"))
        for name, of in splits.items()
    }
    for name, split in means.items():
        if len(split.gap):
            found |= {f"accuracy/{name}": accuracy(split.gap), f"loss/{name}": loss(split.gap)}
    held_out = means["validation"]
    if not len(held_out.gap):
        return found, []
    rows = calibration(held_out.gap)
    found["accuracy/gap"] = found["accuracy/train"] - found["accuracy/validation"]
    found["accuracy/validation_se"] = standard_error(held_out.gap, held_out.pair_prompt)
    found["calibration/error"] = calibration_error(rows)
    if len(splits["validation"]) > 1:
        accuracies = [accuracy(member.gap) for member in splits["validation"]]
        found["members/accuracy_mean"] = float(np.mean(accuracies))
        found["members/accuracy_std"] = float(np.std(accuracies, ddof=1))
    return found | by_margin(held_out.gap, held_out.margin) | length_bias(held_out), rows


def spread(
    raw: Mapping[str, Sequence[Array]], bias: Sequence[float], scale: Sequence[float]
) -> dict[str, float]:
    """Mean and standard deviation of the final rewards, and how much the members differ.

    `raw`: `train`, `validation` and `demonstrations` -> scores of each member (sequences,).
    """
    final = {
        name: (np.stack(of) - np.array(bias)[:, None]) / np.array(scale)[:, None] for name, of in raw.items()
    }  # (members, sequences)
    found = {"bias": float(np.mean(bias)), "scale": float(np.mean(scale))}
    found |= {f"reward/{name}": float(of.mean()) for name, of in final.items() if of.size}
    found["reward/std"] = float(final["train"].mean(axis=0).std())
    if len(bias) > 1:
        found["members/disagreement"] = float(final["train"].std(axis=0, ddof=1).mean())
    return found


def accuracy(gap: Array) -> float:
    """Share of pairs that the model ranks as the labeller does; an equal reward is half."""
    return float(np.mean((gap > 0) + 0.5 * (gap == 0)))


def loss(gap: Array) -> float:
    """Mean of -log sigmoid(gap), in nats."""
    return float(np.mean(np.logaddexp(0.0, -gap)))


def standard_error(gap: Array, prompt: Array) -> float:
    """Of `accuracy`, with the pairs of one `prompt` (pairs,) taken as dependent."""
    right = (gap > 0) + 0.5 * (gap == 0)
    _, place, count = np.unique(prompt, return_inverse=True, return_counts=True)
    if len(count) < 2:
        return 0.5  # as large as can be
    residual = np.bincount(place, weights=right - right.mean())
    return float(np.sqrt(len(count) / (len(count) - 1) * np.sum(residual**2)) / len(gap))


def by_margin(gap: Array, margin: Array) -> dict[str, float]:
    """Accuracy and mean margin in each quarter of the pairs by `margin`, the labeller's; q1 the closest.

    Nothing where the margins are all the same, as those of a data set that says only which is better.
    """
    if len(gap) < QUARTERS or np.ptp(margin) == 0:
        return {}
    found = {}
    for number, part in enumerate(np.array_split(np.argsort(margin, kind="stable"), QUARTERS), start=1):
        found[f"accuracy/margin=q{number}"] = accuracy(gap[part])
        found[f"margin/q{number}"] = float(margin[part].mean())
    return found


def calibration(gap: Array) -> list[dict[str, float]]:
    """Rows of the calibration curve: confidence of the model against how often it agrees with the labeller.

    A pair is predicted with confidence sigmoid(|gap|), from 0.5 to 1; `predicted` and `observed` are means
    over the pairs of a bin. A bin without pairs has no row.
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
    """Expected calibration error: mean of |predicted - observed| over the pairs."""
    total = sum(row["count"] for row in rows)
    return sum(row["count"] * abs(row["predicted"] - row["observed"]) for row in rows) / total


def length_bias(split: Measured) -> dict[str, float]:
    """How much of the reward is length. What cannot be measured is left out.

    Accuracy where the longer response is the worse one, and where it is the better; how often reward and
    labels prefer the longer one; and the correlation of reward and length within prompts.
    """
    gap, longer, found = split.gap, split.longer, {}
    for name, part in (("worse", longer < 0), ("better", longer > 0)):
        if part.any():
            found[f"accuracy/longer_is_{name}"] = accuracy(gap[part])
    unequal = longer != 0
    if unequal.any():
        found["length/preferred"] = accuracy(np.sign(longer[unequal]) * gap[unequal])
        found["length/preferred_by_labels"] = float((longer[unequal] > 0).mean())
    rewards, lengths = within(split.rewards, split.prompt), within(split.lengths, split.prompt)
    if rewards.std() > 0 and lengths.std() > 0:
        found["length/correlation"] = float(np.corrcoef(rewards, lengths)[0, 1])
    return found


def within(values: Array, group: Array) -> Array:
    """`values` less their group's mean."""
    _, place = np.unique(group, return_inverse=True)
    means = np.bincount(place, weights=values) / np.bincount(place)
    return values - means[place]


def _mean(members: Sequence[Measured], name: str) -> Array:
    return np.mean([getattr(member, name) for member in members], axis=0)


def text(rows: Sequence[dict[str, Any]]) -> str:
    """calibration.csv."""
    out = io.StringIO()
    names = ["bin_low", "bin_high", "predicted", "observed", "count"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: repr(value) for name, value in row.items()} for row in rows)
    return out.getvalue()
