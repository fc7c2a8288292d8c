"""Labellers: who ranks the replies to a prompt, and how often they err. Pure functions of utilities.

A labeller perceives utilities v (K,) of K replies and ranks them by Plackett and Luce's model, one choice of
the best of those left after another:

    P(i first) = exp(v_i / T) / sum_j exp(v_j / T)

which for any pair is Bradley and Terry's, P(i over j) = sigma((v_i - v_j) / T). An *annotator* perceives
gold, v = u. A *judge* is biased:

    v_i = u_i + length_bias * tokens_i / 10 + position_bias * (K - 1 - i) / (K - 1)

so that the first reply shown gains `position_bias` on the last. Shown in both orders, the mean of the second
term is the same for all, and falls away.

T is found from what a study reports: how often two labellers agree, or a labeller agrees with gold. T = 0
makes no random errors, so that all that are left are the bias's.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recipes.errors import UserError

Floats = NDArray[np.float64]
HOTTEST, LARGEST_BIAS = 1e4, 1e3  # in standard deviations of what is perceived; beyond them nothing changes


def annotator(utilities: Sequence[float], rng: np.random.Generator, temperature: float) -> list[int]:
    """One ranking of K replies, indices, best first.

    Adding Gumbel noise of scale T and sorting draws from Plackett and Luce's model. At T = 0 equal utilities
    are ordered by lot.
    """
    v = np.asarray(utilities, dtype=float)  # (K,)
    noisy = v + temperature * rng.gumbel(size=len(v))
    return [int(i) for i in np.lexsort((rng.random(len(v)), -noisy))]


def judged(
    utilities: Sequence[float],
    tokens: Sequence[int],
    *,
    length_bias: float = 0.0,
    position_bias: float = 0.0,
    both_orders: bool = True,
) -> Floats:
    """The utilities (K,) that a biased judge perceives, of replies shown in this order; rank by `annotator`.

    `length_bias`: units of the utilities for every ten tokens; `position_bias`: units between first and last.
    """
    v = np.asarray(utilities, dtype=float) + length_bias * np.asarray(tokens, dtype=float) / 10  # (K,)
    return v if both_orders or len(v) < 2 else v + position_bias * np.linspace(1.0, 0.0, len(v))


def gaps(groups: Sequence[Sequence[float]]) -> Floats:
    """v_i - v_j of all pairs i < j of each group of replies to one prompt, (pairs,)."""
    rows = [np.asarray(group, dtype=float) for group in groups]
    parts = [(v[:, None] - v[None, :])[np.triu_indices(len(v), 1)] for v in rows]
    return np.concatenate(parts) if parts else np.zeros(0)


def agreement(perceived: Floats, temperature: float) -> float:
    """How often two such labellers order a pair alike, expected: the mean of p^2 + (1 - p)^2."""
    p = preference(perceived, temperature)
    return float(np.mean(p**2 + (1 - p) ** 2))


def accuracy(perceived: Floats, temperature: float, truth: Floats | None = None) -> float:
    """How often such a labeller orders a pair as gold does, expected; pairs of equal gold are left out.

    `truth`: the gold gaps of the same pairs where the labeller perceives others.
    """
    truth = perceived if truth is None else truth
    apart = truth != 0
    return float(np.mean(preference((np.sign(truth) * perceived)[apart], temperature)))


def preference(perceived: Floats, temperature: float) -> Floats:
    """P(i over j) of pairs with these gaps v_i - v_j; at T = 0 a step, one half at 0."""
    if temperature == 0:
        return (np.sign(perceived) + 1) / 2
    return 1 / (1 + np.exp(-np.clip(perceived / temperature, -500, 500)))


def temperature_for(
    perceived: Floats,
    *,
    agreement: float | None = None,
    accuracy: float | None = None,
    truth: Floats | None = None,
) -> float:
    """The temperature at which labellers agree with each other, or are right, on that share of the pairs.

    `perceived` are `gaps` of what they perceive, `truth` those of gold. The largest such temperature, should
    a bias make several. Raises UserError where no temperature does, naming the most that is possible.
    """
    of: Callable[[float], float]
    if agreement is not None and accuracy is None:
        name, target, of = "agreement", agreement, lambda t: _agreement(perceived, t)
    elif accuracy is not None and agreement is None:
        name, target, of = "accuracy", accuracy, lambda t: _accuracy(perceived, t, truth)
    else:
        raise UserError("labeller: expected one of agreement and accuracy")
    _check(name, target, perceived if truth is None else truth)
    falling = np.geomspace(HOTTEST, 1e-6, 201) * max(1e-9, float(np.std(perceived)))
    return _crossing(name, of, target, np.append(falling, 0.0))


def length_bias_for(
    utilities: Sequence[Sequence[float]],
    tokens: Sequence[Sequence[int]],
    *,
    accuracy: float,
    temperature: float = 0.0,
) -> float:
    """The smallest length bias by which a judge is right on that share of the pairs, at this temperature.

    `utilities` and `tokens`: a group of K for each prompt. At temperature 0 all its errors are structured.
    Raises UserError where no bias makes it so bad, or where the temperature alone makes it worse.
    """
    truth, lengths = gaps(utilities), gaps(tokens) / 10
    _check("accuracy", accuracy, truth)
    unit = float(np.std(truth)) / max(1e-9, float(np.std(lengths)))

    def error(bias: float) -> float:
        return 1 - _accuracy(truth + bias * lengths, temperature, truth)

    if error(0.0) > 1 - accuracy:
        raise UserError(f"labeller.accuracy: {accuracy:g} is out of reach at temperature {temperature:g}")
    return _crossing("error", error, 1 - accuracy, np.geomspace(1e-3, LARGEST_BIAS, 201) * unit)


def _crossing(name: str, of: Callable[[float], float], target: float, places: Floats) -> float:
    """Where `of` first reaches the target along `places`, between two of them by bisection."""
    values = [of(float(place)) for place in places]
    at = next((i for i, value in enumerate(values) if value >= target), None)
    if at is None:
        if name == "error":
            name, target, most = "accuracy", 1 - target, f"{1 - max(values):.3f} at least"
        else:
            most = f"{max(values):.3f} at most"
        raise UserError(f"labeller.{name}: {target:g} is out of reach: {most}")
    before, after = float(places[max(0, at - 1)]), float(places[at])
    for _ in range(60):
        middle = (before + after) / 2
        before, after = (before, middle) if of(middle) >= target else (middle, after)
    return after


def _check(name: str, target: float, truth: Floats) -> None:
    if not 0.5 < target <= 1:
        raise UserError(f"labeller.{name}: expected more than 0.5 and at most 1, got {target:g}")
    if not np.any(truth):
        raise UserError("labeller: no two replies to a prompt differ in gold; there is nothing to rank")


_agreement, _accuracy = agreement, accuracy  # the keywords of the same names hide them
