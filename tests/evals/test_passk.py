"""The estimators against enumeration of every subset, known values, and simulated coverage."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations
from math import comb
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.passk import interval, majority_at_k, pass_at_k, resamples, variance

ANSWERS = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=6)


def enumerated_pass(row, k):
    subsets = list(combinations(row, k))
    return sum(any(subset) for subset in subsets) / len(subsets)


def enumerated_majority(correct, answers, k):
    """Every ordered draw of k samples, the first seen of the most frequent answers wins (Counter)."""
    worth = {a: np.mean([c for c, b in zip(correct, answers, strict=True) if b == a]) for a in answers}
    draws = list(permutations(answers, k))
    wins = 0.0
    for draw in draws:
        counted = Counter(answer for answer in draw if answer is not None).most_common(1)
        wins += worth[counted[0][0]] if counted else 0.0
    return wins / len(draws)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_pass_at_k_is_the_mean_over_every_subset(row, data):
    k = data.draw(st.integers(1, len(row)))
    assert pass_at_k(np.array([row]), k)[0] == pytest.approx(enumerated_pass(row, k), abs=1e-12)


@given(ANSWERS, st.data())
def test_majority_at_k_is_the_mean_over_every_ordered_draw(answers, data):
    k = data.draw(st.integers(1, len(answers)))
    correct = np.array([data.draw(st.booleans()) for _ in answers])
    found = majority_at_k(correct[None], [answers], k)[0]
    assert found == pytest.approx(enumerated_majority(correct, answers, k), abs=1e-9)


def test_known_values():
    two_of_ten = np.array([[True] * 2 + [False] * 8])
    assert pass_at_k(two_of_ten, 1)[0] == pytest.approx(0.2)
    assert pass_at_k(two_of_ten, 5)[0] == pytest.approx(1 - 56 / 252)  # 1 - C(8,5) / C(10,5)
    assert pass_at_k(two_of_ten, 9)[0] == 1.0
    assert pass_at_k(np.zeros((1, 10), bool), 10)[0] == 0.0
    three_two = majority_at_k(np.array([[1, 1, 1, 0, 0]], bool), [["x", "x", "x", "y", "y"]], 5)
    assert three_two[0] == pytest.approx(1.0)
    tied = majority_at_k(np.array([[1, 0, 0]], bool), [["x", "y", "z"]], 3)
    assert tied[0] == pytest.approx(1 / 3)
    none = majority_at_k(np.array([[1, 0, 0]], bool), [["x", None, None]], 2)
    assert none[0] == pytest.approx(2 / 3)  # a single vote wins whenever it is drawn


@pytest.mark.parametrize("count", [2, 5, 6, 11])
def test_a_tie_of_many_answers_is_shared(count):
    """Needs as many quadrature nodes as there are answers to tie with: two give .1528 for six."""
    correct = np.array([[True] + [False] * (count - 1)])
    assert majority_at_k(correct, [list(map(str, range(count)))], count)[0] == pytest.approx(
        1 / count, abs=1e-12
    )


def test_quadrature_is_computed_once_for_a_number_of_answers():
    """It was half of the time of maj@k."""
    answers = [[*"aabbcdefghijklmnopqrstu"]] * 50
    correct = np.array([[given == "a" for given in row] for row in answers])
    with patch("numpy.polynomial.legendre.leggauss", wraps=np.polynomial.legendre.leggauss) as computed:
        for k in (2, 4, 8):
            majority_at_k(correct, answers, k)
    assert computed.call_count == 1


@given(ANSWERS, st.data())
def test_both_ways_to_count_majorities_agree(answers, data):
    k = data.draw(st.integers(1, len(answers)))
    correct = np.array([data.draw(st.booleans()) for _ in answers])
    with patch("evals.passk.MANY", 0):
        found = majority_at_k(correct[None], [answers], k)[0]
    assert found == pytest.approx(majority_at_k(correct[None], [answers], k)[0], abs=1e-12)


def test_thousands_of_samples_take_seconds():
    rng = np.random.default_rng(0)
    answers = [[*"abcd"][i] for i in rng.choice(4, 10_000, p=[0.31, 0.29, 0.2, 0.2])]
    correct = np.array([answer == "a" for answer in answers])
    found = majority_at_k(correct[None], [answers], 5_000)[0]
    draws = rng.multivariate_hypergeometric([answers.count(a) for a in "abcd"], 5_000, size=20_000)
    assert found == pytest.approx(np.mean(draws.argmax(axis=1) == 0), abs=0.01)


def test_large_n_stays_finite_and_exact():
    correct = np.zeros((1, 1024), bool)
    correct[0, :512] = True
    answers = [["right"] * 512 + ["wrong"] * 512]
    assert pass_at_k(correct, 1024)[0] == 1.0
    assert majority_at_k(correct, answers, 1)[0] == pytest.approx(0.5)
    assert majority_at_k(correct, answers, 64)[0] == pytest.approx(0.5)


@given(st.integers(1, 10_000), st.data())
def test_pass_at_k_is_exact_up_to_ten_thousand_samples(n, data):
    """Against whole numbers, for which nothing is too large: 1 - C(n-c, k) / C(n, k)."""
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    exact = float(1 - Fraction(comb(n - c, k), comb(n, k)))
    assert pass_at_k((np.arange(n) < c)[None], k)[0] == pytest.approx(exact, abs=1e-11)


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=5))
def test_pass_at_k_rises_with_k_from_accuracy(rows):
    correct = np.array(rows)
    curve = np.stack([pass_at_k(correct, k) for k in range(1, 7)])  # (k, items)
    assert np.allclose(curve[0], correct.mean(axis=1))
    assert (np.diff(curve, axis=0) >= -1e-12).all()
    assert np.array_equal(curve[-1], correct.any(axis=1).astype(float))


def test_majority_of_one_is_accuracy():
    rng = np.random.default_rng(0)
    answers = [[str(v) for v in row] for row in rng.integers(0, 4, (20, 8))]
    correct = np.array([[answer == "1" for answer in row] for row in answers])
    assert np.allclose(majority_at_k(correct, answers, 1), correct.mean(axis=1))


@pytest.mark.parametrize("k", [0, 5])
def test_k_out_of_range(k):
    with pytest.raises(ValueError, match="between 1 and the number of samples an item, 4"):
        pass_at_k(np.zeros((2, 4), bool), k)


def coverage(metric, truth, items=100, samples=8, runs=400):
    """Share of runs whose 95% interval holds the truth; an item's accuracy is Beta(1, 2)."""
    rng = np.random.default_rng(1)
    hits = 0
    for run in range(runs):
        p = rng.beta(1, 2, size=(items, 1))
        values = metric(rng.random((items, samples)) < p)
        _, low, high = interval(values, np.ones(items), resamples(items, draws=200, seed=run))
        hits += low <= truth <= high
    return hits / runs


@pytest.mark.parametrize(
    ("metric", "truth"),
    [
        (lambda correct: correct.mean(axis=1), 1 / 3),
        # E[1 - (1-p)^8] for Beta(1, 2): 1 - B(1, 10) / B(1, 2) = 1 - 2/10; k = n is the hardest pass@k
        (lambda correct: pass_at_k(correct, 8), 0.8),
    ],
)
def test_the_interval_covers_items_and_sampling(metric, truth):
    # 400 runs: three standard errors of a true 95% are 3.3 points; the bootstrap itself is a little narrow
    assert 0.91 <= coverage(metric, truth) <= 0.985


def test_interval_is_deterministic_and_holds_its_value():
    values = np.random.default_rng(0).random(50)
    first = interval(values, np.ones(50), resamples(50, seed=3))
    assert first == interval(values, np.ones(50), resamples(50, seed=3))
    assert first[1] < first[0] < first[2]


def test_interval_of_a_ratio_without_denominator_is_nan():
    assert np.isnan(interval(np.zeros(4), np.zeros(4), resamples(4))).all()


def test_variance_splits_into_items_and_sampling():
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.8], size=(4000, 1))  # variance of items 0.09, p(1-p) = 0.16
    parts = variance(rng.random((4000, 8)) < p)
    assert parts["items"] * 4000 == pytest.approx(0.09, rel=0.1)
    assert parts["sampling"] * 4000 == pytest.approx(0.16 / 8, rel=0.1)
    assert variance(np.ones((1, 4), bool)) == {"items": 0.0, "sampling": 0.0}
