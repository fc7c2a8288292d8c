"""Best-of-n against every subset there is, and the laws that it keeps."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.best_of_n import best_of_n, weights


@st.composite
def scored(draw):
    """(gold, proxy, n) of one item; a few proxy values, so that many are equal."""
    size = draw(st.integers(1, 7))
    gold = draw(st.lists(st.floats(-5, 5), min_size=size, max_size=size))
    proxy = draw(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), min_size=size, max_size=size))
    return np.array([gold]), np.array([proxy]), draw(st.integers(1, size))


def by_all_subsets(gold, proxy, n):
    """The mean over all n-subsets of the mean gold of those whose proxy is the subset's highest."""
    worth = []
    for subset in combinations(range(len(gold)), n):
        best = max(proxy[i] for i in subset)
        worth.append(np.mean([gold[i] for i in subset if proxy[i] == best]))
    return np.mean(worth)


@given(scored())
def test_it_is_the_mean_over_every_subset(case):
    gold, proxy, n = case
    assert best_of_n(gold, proxy, n)[0] == pytest.approx(by_all_subsets(gold[0], proxy[0], n), abs=1e-12)


@given(scored())
def test_laws(case):
    gold, proxy, n = case
    size = gold.shape[1]
    assert weights(proxy, n).sum() == pytest.approx(1.0)
    assert best_of_n(gold, proxy, 1)[0] == pytest.approx(gold.mean(), abs=1e-12)
    assert best_of_n(gold, proxy, size)[0] == pytest.approx(gold[proxy == proxy.max()].mean(), abs=1e-12)
    assert best_of_n(gold, 2 * proxy - 7, n) == pytest.approx(best_of_n(gold, proxy, n))  # ranks alone count
    rising = [best_of_n(proxy, proxy, m)[0] for m in range(1, size + 1)]
    assert all(later >= earlier - 1e-12 for earlier, later in pairwise(rising))


def test_items_are_apart_and_many_samples_do_not_overflow():
    rng = np.random.default_rng(0)
    gold, proxy = rng.normal(size=(2, 40, 400))
    together = best_of_n(gold, proxy, 100)
    assert together == pytest.approx([best_of_n(gold[i, None], proxy[i, None], 100)[0] for i in range(40)])
    # the best of 100 draws of a standard normal is 2.508 in expectation
    assert best_of_n(proxy, proxy, 100).mean() == pytest.approx(2.508, abs=0.1)
    assert np.isfinite(weights(rng.normal(size=(1, 2000)), 1000)).all()


@pytest.mark.parametrize("n", [0, 5])
def test_more_than_was_drawn(n):
    with pytest.raises(ValueError, match=f"between 1 and the number of samples an item, 4; got {n}"):
        weights(np.zeros((2, 4)), n)
