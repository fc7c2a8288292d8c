"""Labellers that rank the replies to a prompt, and how often they err. Pure functions of utilities.

A labeller perceives utilities v (K,) of K replies and ranks them by Plackett and Luce's model: again and
again it chooses the best of the replies that are left,

    P(i first) = exp(v_i / T) / sum_j exp(v_j / T)

which for a pair is Bradley and Terry's model, P(i over j) = sigma((v_i - v_j) / T). An *annotator* perceives
gold, v = u. A *judge* is biased:

    v_i = u_i + length_bias * tokens_i / 10 + position_bias * (K - 1 - i) / (K - 1)

so that the reply shown first gains `position_bias` over the last. When the judge sees both orders, the
position term averages to the same for all replies and is left out.

T follows from what a study reports: how often two labellers agree, or a labeller agrees with gold. At T = 0
there are no random errors, only errors from the bias.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from encore.errors import UserError

Floats = NDArray[np.float64]
HOTTEST = 1e4  # highest temperature, in standard deviations of the perceived gaps; higher ones change nothing


def annotator(utilities: Sequence[float], rng: np.random.Generator, temperature: float) -> list[int]:
    """Return one ranking of K replies as indices, best first.

    Adding Gumbel noise of scale T and sorting draws from Plackett and Luce's model. At T = 0 equal utilities
    are ordered at random.
    """
    v = np.asarray(utilities, dtype=float)  # (K,)
    noisy = v + temperature * rng.gumbel(size=len(v))
    return [int(i) for i in np.lexsort((rng.random(len(v)), -noisy))]


def perceived(
    utilities: Sequence[float],
    tokens: Sequence[int],
    *,
    length_bias: float = 0.0,
    position_bias: float = 0.0,
    both_orders: bool = True,
) -> Floats:
    """Return the utilities (K,) that a biased judge perceives in replies shown in this order.

    `length_bias` is in units of utility for every ten tokens. `position_bias` is the difference in utility
    between the first position and the last.
    """
    v = np.asarray(utilities, dtype=float) + length_bias * np.asarray(tokens, dtype=float) / 10  # (K,)
    return v if both_orders or len(v) < 2 else v + position_bias * np.linspace(1.0, 0.0, len(v))


def gaps(groups: Sequence[Sequence[float]]) -> Floats:
    """Return v_i - v_j of all pairs i < j in each group, the replies to one prompt: (pairs,)."""
    rows = [np.asarray(group, dtype=float) for group in groups]
    parts = [(v[:, None] - v[None, :])[np.triu_indices(len(v), 1)] for v in rows]
    return np.concatenate(parts) if parts else np.zeros(0)


def agreement(seen: Floats, temperature: float) -> float:
    """Return the expected share of pairs that two labellers order alike: the mean of p^2 + (1 - p)^2.

    `seen` are the `gaps` of the utilities that both perceive; p is the probability to prefer the first reply.
    """
    p = _preference(seen, temperature)
    return float(np.mean(p**2 + (1 - p) ** 2))


def accuracy(seen: Floats, temperature: float, truth: Floats | None = None) -> float:
    """Return the expected share of pairs that a labeller orders as gold does, without pairs of equal gold.

    `truth` are the gold gaps of the same pairs, if they differ from the `gaps` seen.
    """
    truth = seen if truth is None else truth
    apart = truth != 0
    return float(np.mean(_preference((np.sign(truth) * seen)[apart], temperature)))


def _preference(seen: Floats, temperature: float) -> Floats:
    """Return P(i over j) of pairs with these gaps v_i - v_j; at T = 0 a step, which is one half at 0."""
    if temperature == 0:
        return (np.sign(seen) + 1) / 2
    return 1 / (1 + np.exp(-np.clip(seen / temperature, -500, 500)))


def temperature_for(
    seen: Floats,
    *,
    agreement: float | None = None,
    accuracy: float | None = None,
    truth: Floats | None = None,
) -> float:
    """Return the temperature at which labellers agree with each other, or with gold, on this share of pairs.

    `seen` are the `gaps` that the labellers perceive, `truth` the gaps of gold. Of several such temperatures,
    which a bias can cause, it is the largest. Raises UserError, which names the largest possible share, if
    there is none.
    """
    of: Callable[[float], float]
    if agreement is not None and accuracy is None:
        name, target, of = "agreement", agreement, lambda t: _agreement(seen, t)
    elif accuracy is not None and agreement is None:
        name, target, of = "accuracy", accuracy, lambda t: _accuracy(seen, t, truth)
    else:
        raise UserError("labeller: expected either agreement or accuracy")
    _check_target(name, target, seen if truth is None else truth)
    falling = np.geomspace(HOTTEST, 1e-6, 201) * max(1e-9, float(np.std(seen)))
    return _crossing(name, of, target, np.append(falling, 0.0))


def _crossing(name: str, of: Callable[[float], float], target: float, places: Floats) -> float:
    """Return where, along `places`, the function `of` first reaches the target, refined by bisection."""
    values = [of(float(place)) for place in places]
    at = next((i for i, value in enumerate(values) if value >= target), None)
    if at is None:
        raise UserError(f"labeller.{name}: {target:g} is out of reach: {max(values):.3f} at most")
    before, after = float(places[max(0, at - 1)]), float(places[at])
    for _ in range(60):
        middle = (before + after) / 2
        before, after = (before, middle) if of(middle) >= target else (middle, after)
    return after


def _check_target(name: str, target: float, truth: Floats) -> None:
    if not 0.5 < target <= 1:
        raise UserError(f"labeller.{name}: expected more than 0.5 and at most 1, got {target:g}")
    if not np.any(truth):
        raise UserError("labeller: no two replies to a prompt differ in gold; there is nothing to rank")


_agreement, _accuracy = agreement, accuracy  # `temperature_for` has arguments of the same names
