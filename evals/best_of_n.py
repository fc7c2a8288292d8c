"""Best-of-n from N samples of each item: the value of the sample that a proxy prefers among n."""

from math import comb

import numpy as np

from evals.passk import Floats


def weights(proxy: Floats, n: int) -> Floats:
    """Return the probability (items, samples) that a sample is the best by `proxy` of n drawn samples.

    The draw is without replacement. Nakano et al. 2021 (WebGPT), App. I; Gao et al. 2022, §2: the reply of
    rank i, from the lowest, is the best of n with probability C(i-1, n-1) / C(N, n). Over ranks i <= m these
    add up to C(m, n) / C(N, n), the probability that all n are among the m lowest. Samples with equal scores
    share the probabilities of their ranks equally. Raises ValueError unless 1 <= n <= N.
    """
    drawn = proxy.shape[1]
    if not 1 <= n <= drawn:
        raise ValueError(f"n must be between 1 and the number of samples an item, {drawn}; got {n}")
    among = np.array([comb(m, n) / comb(drawn, n) for m in range(drawn + 1)])  # (samples + 1,)
    chances = np.empty(proxy.shape)
    for item, scores in enumerate(proxy):
        ordered = np.sort(scores)
        below, upto = np.searchsorted(ordered, scores), np.searchsorted(ordered, scores, side="right")
        chances[item] = (among[upto] - among[below]) / (upto - below)
    return chances


def best_of_n(values: Floats, proxy: Floats, n: int) -> Floats:
    """Return the expected value (items,) of the best of n samples by `proxy`, an unbiased estimate.

    The expectation is over all n-subsets of the N samples. `values` (items, samples) are the values of the
    samples: their gold, or the proxy itself.
    """
    return (weights(proxy, n) * values).sum(axis=1)
