"""pass@k and maj@k from n samples of each item, with intervals. Pure functions on arrays.

`correct` is (items, samples) of bool, `answers` (items, samples) of str, or None for a sample without answer,
which never votes. Every metric is a ratio of two sums over items, given as two arrays `numerator` and
`denominator`, each (items,); a plain mean over items has denominator 1. avg@n is accuracy.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import binom

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Answers = Sequence[Sequence[str | None]]
MANY = 512  # samples for each item, above which a Fourier transform is faster
NEGLIGIBLE = 1e-18  # probability that is neglected in a sum of at most 1


def pass_at_k(correct: Bools, k: int) -> Floats:
    """Return the unbiased probability (items,) that at least one of k samples is right.

    It is 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, eq. 1). The ratio of binomials is the probability of k
    wrong draws in a row, without replacement; as a product of k factors it neither overflows nor misses 0 and
    1. Raises ValueError unless 1 <= k <= n.
    """
    n = _samples(correct, k)
    wrong = (~correct).sum(axis=1)[:, None]  # (items, 1)
    drawn = np.arange(k)  # (k,)
    return 1.0 - np.prod(np.maximum(wrong - drawn, 0) / (n - drawn), axis=1)


def majority_at_k(correct: Bools, answers: Answers, k: int) -> Floats:
    """Return the expected accuracy (items,) of the majority answer of k samples, over every k-subset.

    It is exact, not simulated. A tie goes to the answer seen first; in a random order each tied answer is
    first equally often, so a winner tied with t others counts 1 / (t + 1). An answer is worth the mean
    correctness of the samples that gave it, and a subset without answers 0. So maj@1 is the accuracy, if
    samples without an answer are wrong. Raises ValueError unless 1 <= k <= n.
    """
    _samples(correct, k)
    return np.array([_majority(right, votes, k) for right, votes in zip(correct, answers, strict=True)])


def _majority(correct: Bools, answers: Sequence[str | None], k: int) -> float:
    """Return for one item the sum over right answers a and counts j of P(a is drawn j times and wins).

    Drawing k of n without replacement is drawing each sample with probability p and conditioning on k in all
    (any p; k/n keeps the numbers near 1). Counts of different answers are then independent, so their joint
    law is a product of polynomials in z, whose power is the number of samples drawn. A second variable u
    marks the rivals that reach j too: the integral of u^t over [0, 1] is the wanted 1 / (t + 1), by
    Gauss-Legendre.
    """
    votes: dict[str, list[bool]] = {}
    for right, answer in zip(correct, answers, strict=True):
        if answer is not None:
            votes.setdefault(answer, []).append(bool(right))
    n, p, sizes = len(answers), k / len(answers), [len(rights) for rights in votes.values()]
    law = _by_products if n <= MANY else _by_transform
    total = 0.0
    for index, rights in enumerate(votes.values()):
        # (n + 1,) probabilities of j draws of this answer, times its correctness
        chances = np.mean(rights) * _draws(len(rights), n, p)
        for j in range(1, min(len(rights), k) + 1):
            if chances[j] <= (NEGLIGIBLE if n > MANY else 0.0):
                continue
            rivals = [size for other, size in enumerate(sizes) if other != index and size >= j]
            # largest number of ties; few answers of many are given often
            ties = len(rivals) if n > MANY else len(sizes)
            u, du = _quadrature(ties // 2 + 1)  # the quadrature is exact up to degree ties + 1
            # samples without an answer, or with an answer that cannot reach j
            free = n - len(rights) - sum(rivals)
            total += float(chances[j] * (du @ law(free, rivals, j, k - j, n, p, u)))
    return float(total / _draws(n, n, p)[k])


def _by_products(
    free: int, rivals: Sequence[int], j: int, others: int, n: int, p: float, u: Floats
) -> Floats:
    """Return the probability (nodes,) that `others` draws, beside j of an answer, give no rival more than j.

    Each entry is for a value of the variable u (nodes,), which marks ties.
    """
    law = np.tile(_draws(free, n, p)[: others + 1], (len(u), 1))  # (nodes, other draws)
    for size in rivals:
        law = _times(law, _draws(size, n, p)[: j + 1], u)
    return law[:, others]


def _by_transform(
    free: int, rivals: Sequence[int], j: int, others: int, n: int, p: float, u: Floats
) -> Floats:
    """Return what `_by_products` returns, to about 1e-12, but by Fourier transform, fast for many samples."""
    width = next_fast_len(n + 1, real=True)  # no product has more than n draws
    law = np.tile(rfft(_draws(free, n, p), width), (len(u), 1))
    for size, count in Counter(rivals).items():
        rival = np.tile(_draws(size, n, p)[: j + 1], (len(u), 1))
        rival[:, j] *= u
        law *= rfft(rival, width) ** count
    return irfft(law, width)[:, others]


@cache
def _quadrature(nodes: int) -> tuple[Floats, Floats]:
    """Return Gauss-Legendre's points and weights on [0, 1], each (nodes,); cached, as numpy is slow."""
    places, weights = np.polynomial.legendre.leggauss(nodes)
    return (places + 1) / 2, weights / 2


@cache
def _draws(size: int, n: int, p: float) -> Floats:
    """Return the probability (n + 1,) of 0, 1, … n draws out of `size` samples.

    The result is cached: few sizes occur, and scipy's call is slow.
    """
    return binom.pmf(np.arange(n + 1), size, p)


def _times(law: Floats, rival: Floats, u: Floats) -> Floats:
    """Return `law` (nodes, draws) times a rival's polynomial (j + 1,); u marks its last term, a tie."""
    product, width = np.zeros_like(law), law.shape[1]
    for drawn, chance in enumerate(rival[:width]):
        tie = u[:, None] if drawn == len(rival) - 1 else 1.0
        product[:, drawn:] += law[:, : width - drawn] * chance * tie
    return product


def resamples(items: int, draws: int = 2000, seed: int = 0) -> Floats:
    """Return how often each item occurs in each bootstrap resample of the items, (draws, items)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(items, np.full(items, 1 / items), size=draws).astype(float)


def interval(
    numerator: Floats, denominator: Floats, resampled: Floats, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the value of sum(numerator) / sum(denominator), and its interval's low and high bounds.

    The interval is a percentile bootstrap over items. Items are resampled together with their samples, so the
    replicates vary by items and by sampling: in a two-stage sample the first stage carries both. Resampling
    inside an item would count sampling twice and, as repeats replace distinct samples, push pass@k below its
    value. All three are NaN if the denominator is 0, as for the length of right answers when none is right.
    """
    if not denominator.sum():
        return np.nan, np.nan, np.nan
    below = resampled @ denominator  # (draws,)
    values = (resampled @ numerator)[below > 0] / below[below > 0]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(numerator.sum() / denominator.sum()), float(low), float(high)


def variance(correct: Bools) -> dict[str, float]:
    """Return the variance of the mean accuracy in two parts that add up to it: {"items", "sampling"}.

    One-way random effects: the samples of an item vary by p(1 - p), the items by the spread of p. More
    samples for each item shrink only "sampling". With one sample an item the two cannot be separated, and all
    is "items".
    """
    items, n = correct.shape
    if items < 2:
        return {"items": 0.0, "sampling": 0.0}
    total = float(correct.mean(axis=1).var(ddof=1)) / items
    sampling = float(correct.var(axis=1, ddof=1).mean()) / n / items if n > 1 else 0.0
    return {"items": max(total - sampling, 0.0), "sampling": sampling}


def _samples(correct: Bools, k: int) -> int:
    n = correct.shape[1]
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and the number of samples an item, {n}; got {k}")
    return n
