"""Labellers: rankings follow Plackett and Luce's law, and calibration hits what studies report."""

import itertools
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.errors import UserError
from encore.labels.plackett_luce import (
    accuracy,
    agreement,
    annotator,
    gaps,
    perceived,
    temperature_for,
)

RNG = np.random.default_rng(0)
UTILITIES = RNG.normal(size=(200, 4))  # (prompts, K)
TOKENS = RNG.integers(5, 60, size=(200, 4))
GOLD = gaps(UTILITIES)


def test_rankings_follow_plackett_and_luce():
    v, t, n = np.array([0.0, 0.5, -1.0]), 0.7, 5_000
    rng = np.random.default_rng(1)
    found = [tuple(annotator(v, rng, t)) for _ in range(n)]
    for order in itertools.permutations(range(3)):
        weights = [exp(v[i] / t) for i in order]
        expected = np.prod([weights[k] / sum(weights[k:]) for k in range(3)])
        assert found.count(order) / n == pytest.approx(expected, abs=4 * (expected / n) ** 0.5)


def test_without_noise_the_ranking_is_sorted_and_ties_fall_by_lot():
    rng = np.random.default_rng(0)
    assert annotator([0.1, 3.0, -2.0], rng, 0.0) == [1, 0, 2]
    firsts = [annotator([1.0, 1.0], rng, 0.0)[0] for _ in range(400)]
    assert 140 < sum(firsts) < 260


@pytest.mark.parametrize("target", [0.725, 0.95])
def test_calibration_is_what_simulated_labellers_do(target):
    for name, of in (("agreement", agreement), ("accuracy", accuracy)):
        assert of(GOLD, temperature_for(GOLD, **{name: target})) == pytest.approx(target, abs=1e-6)
    t, rng = temperature_for(GOLD, agreement=target), np.random.default_rng(2)
    first, second = ([annotator(u, rng, t) for u in UTILITIES] for _ in range(2))
    alike = [
        (a.index(i) < a.index(j)) == (b.index(i) < b.index(j))
        for a, b in zip(first, second, strict=True)
        for i, j in itertools.combinations(range(4), 2)
    ]
    assert np.mean(alike) == pytest.approx(target, abs=0.05)


def test_pairs_of_equal_gold_count_for_agreement_and_not_for_accuracy():
    half = gaps([[1.0, 1.0], [2.0, 0.0]])
    assert list(half) == [0.0, 2.0]
    assert agreement(half, 1e-3) == pytest.approx(0.75)
    assert accuracy(half, 1e-3) == pytest.approx(1.0)
    with pytest.raises(UserError, match=r"agreement: 0.8 is out of reach: 0.750 at most"):
        temperature_for(half, agreement=0.8)


def test_a_position_bias_is_gone_once_both_orders_are_shown():
    kept = perceived([0.0, 0.0, 0.0], [1, 1, 1], position_bias=0.6, both_orders=False)
    assert list(kept) == pytest.approx([0.6, 0.3, 0.0])
    assert list(perceived([0.0, 0.0, 0.0], [1, 1, 1], position_bias=0.6)) == [0.0, 0.0, 0.0]
    assert list(perceived([0.0], [1], position_bias=0.6, both_orders=False)) == [0.0]


def test_a_length_bias_prefers_the_longer_reply_to_the_better():
    assert list(perceived([1.0, 0.0], [10, 50], length_bias=0.5)) == pytest.approx([1.5, 2.5])


@settings(max_examples=10)
@given(st.floats(0.0, 0.3), st.floats(0.0, 1.0), st.sampled_from([0.6, 0.7]))
def test_a_biased_judge_is_calibrated_too(length_bias, position_bias, target):
    seen = gaps(
        [
            perceived(u, n, length_bias=length_bias, position_bias=position_bias, both_orders=False)
            for u, n in zip(UTILITIES[:60], TOKENS[:60], strict=True)
        ]
    )
    truth = gaps(UTILITIES[:60])
    t = temperature_for(seen, accuracy=target, truth=truth)
    assert accuracy(seen, t, truth) == pytest.approx(target, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: temperature_for(GOLD), "either agreement or accuracy"),
        (lambda: temperature_for(GOLD, agreement=0.7, accuracy=0.7), "either agreement or accuracy"),
        (
            lambda: temperature_for(GOLD, accuracy=0.5),
            "accuracy: expected more than 0.5 and at most 1, got 0.5",
        ),
        (lambda: temperature_for(np.zeros(3), accuracy=0.7), "no two replies"),
        (
            lambda: temperature_for(-GOLD, accuracy=0.7, truth=GOLD),
            "accuracy: 0.7 is out of reach: 0.500 at most",
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_line(call, expected):
    with pytest.raises(UserError) as error:
        call()
    assert expected in str(error.value)
