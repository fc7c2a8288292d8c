"""Win rates against brute force, their intervals, and the rate at equal length."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.preferences import length_control, win_rates
from analysis.preferences.contenders import Replies

RNG = np.random.default_rng(0)


def replies(gold, tokens=None, proxy=None) -> Replies:
    gold = np.asarray(gold, dtype=float)
    scores = {"gold": gold, "tokens": np.zeros_like(gold) if tokens is None else np.asarray(tokens, float)}
    return Replies(tuple(range(len(gold))), scores | ({} if proxy is None else {"proxy": np.asarray(proxy)}))


@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=4),
       st.lists(st.integers(-2, 2), min_size=2, max_size=2))  # fmt: skip
def test_a_chance_is_that_of_all_pairs_ties_half(one, row):
    other = [row] * len(one)
    for chance, a, b in zip(win_rates.better(np.array(one), np.array(other)), one, other, strict=True):
        brute = [1.0 if x > y else 0.5 if x == y else 0.0 for x in a for y in b]
        assert chance == pytest.approx(sum(brute) / len(brute))


def test_the_matrix_is_that_of_brute_force_both_ways():
    gold = {name: {seed: replies(RNG.integers(0, 4, (5, 3)) + shift) for seed in (0, 1)}
            for name, shift in (("sft", 0), ("ppo", 1), ("dpo", 2))}  # fmt: skip
    found = win_rates.matrix(gold).set_index(["of", "against"])
    assert len(found) == 6
    for (one, other), row in found.iterrows():
        wins = [
            (x > y) + 0.5 * (x == y)
            for seed in (0, 1)
            for item in range(5)
            for x in gold[one][seed].scores["gold"][item]
            for y in gold[other][seed].scores["gold"][item]
        ]
        assert row.win_rate == pytest.approx(np.mean(wins))
        assert row.win_rate == pytest.approx(1 - found.loc[(other, one)].win_rate)
        assert 0 <= row.low <= row.win_rate <= row.high <= 1
    assert win_rates.names(found.reset_index()) == ["sft", "ppo", "dpo"]


def test_items_are_paired_by_their_number():
    one = Replies((3, 1, 2), {"gold": np.array([[3.0], [1.0], [2.0]])})
    other = Replies((1, 2, 9), {"gold": np.array([[0.5], [2.5], [0.0]])})
    assert win_rates.between({0: one}, {0: other}).tolist() == [[1.0, 0.0]]  # items 1 and 2


def test_seeds_that_share_both_policies_count_once():
    one, other = replies(RNG.normal(size=(4, 2))), replies(RNG.normal(size=(4, 2)))
    assert win_rates.between({0: one, 1: one}, {0: other, 1: other}).shape == (1, 4)
    assert win_rates.between({0: one, 1: one}, {0: other, 1: replies(other.scores["gold"])}).shape == (2, 4)
    assert not win_rates.estimate(win_rates.between({0: one}, {1: other})).n


def test_the_interval_covers_when_items_and_seeds_both_vary():
    """0.6 is the mean of the law; pairing by item and seed must not make the interval too narrow."""
    for of_seeds in (0.05, 0.1):  # the plain percentile interval covers 86% of the latter
        hits, trials = 0, 200
        for trial in range(trials):
            rng = np.random.default_rng(trial)
            by_seed, by_item = rng.normal(0, of_seeds, (5, 1)), rng.normal(0, 0.2, 60)
            chances = 0.6 + by_seed + by_item + rng.normal(0, 0.1, (5, 60))
            mean = win_rates.estimate(chances, draws=400)
            hits += mean.low <= 0.6 <= mean.high
        assert hits / trials > 0.9
    alike = win_rates.estimate(np.full((3, 7), 0.25))
    assert (alike.low, alike.value, alike.high) == pytest.approx((0.25, 0.25, 0.25))


def judged(theta, phi, items, longer):
    """Lengths of two policies' replies (items, 1), and where the first won by the model of length control."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(20 + longer, 4, (items, 1)), rng.normal(20, 4, (items, 1))
    chance = 1 / (1 + np.exp(-theta - phi * np.tanh((a - b) / (a - b).std())))
    return a, b, rng.random((items, 1)) < chance


def test_length_control_recovers_worth_and_the_price_of_length():
    a, b, wins = judged(0.3, 1.5, items=3000, longer=3.0)
    x = length_control.features(a, b)
    theta, phi = length_control.logistic(x, wins.ravel().astype(float))
    assert (theta, phi) == pytest.approx((0.3, 1.5), abs=0.12)
    assert wins.mean() > 1 / (1 + math.exp(-0.3)) + 0.05  # length had bought a part of the plain rate
    one, other = replies(wins.astype(float), a), replies(np.full(wins.shape, 0.5), b)
    found = length_control.rate({0: one}, {0: other}, "gold")
    assert found.value == pytest.approx(1 / (1 + math.exp(-0.3)), abs=0.03)
    assert found.low < found.value < found.high < found.low + 0.1
    assert found.over == "items"


def test_newton_is_at_the_top_of_the_likelihood():
    x, wins = np.stack([np.ones(50), RNG.normal(size=50)], axis=1), RNG.integers(0, 3, 50) / 2
    best = length_control.logistic(x, wins)

    def loss(w):
        logits = x @ w
        return np.sum(np.logaddexp(0, logits) - wins * logits) + w @ w / 2 / length_control.PRIOR**2

    assert all(loss(best) < loss(best + step) for step in RNG.normal(0, 0.01, (50, 2)))


def test_length_control_is_a_half_against_itself_and_changes_sides():
    own = replies(RNG.normal(size=(30, 4)), RNG.integers(5, 30, (30, 4)))
    other = replies(RNG.normal(0.5, 1, (30, 4)), RNG.integers(5, 40, (30, 4)))
    assert length_control.rate({0: own}, {0: own}, "gold").value == pytest.approx(0.5)
    there, back = (length_control.rate({0: a}, {0: b}, "gold").value for a, b in ((own, other), (other, own)))
    assert there + back == pytest.approx(1)


def test_a_policy_that_always_wins_has_a_finite_rate():
    one, other = (
        replies(np.ones((20, 3)), np.full((20, 3), 9)),
        replies(np.zeros((20, 3)), np.full((20, 3), 9)),
    )
    found = length_control.rate({0: one, 1: replies(np.ones((20, 3)))}, {0: other, 1: other}, "gold")
    assert 0.99 < found.value <= 1
    assert found.over == "seeds"


def test_the_page_says_what_is_left_at_equal_length():
    a, b, wins = judged(0.0, 2.0, items=1000, longer=6.0)
    one, other = replies(wins.astype(float), a, wins.astype(float)), replies(np.full(wins.shape, 0.5), b)
    frame = length_control.against(
        {"sft": {0: other}, "ppo": {0: one}}, "sft", {"ppo": {0: other}, "sft": {}}
    )
    (row,) = frame.to_dict("records")
    assert row["gold/win_rate"] > 0.6 > 0.56 > row["gold/controlled"]
    assert row["length"] == pytest.approx(a.mean() - b.mean())
    (shown,) = length_control.against_shown(frame).to_dict("records")
    assert list(shown) == [
        "",
        "tokens more",
        "by gold",
        "by gold, at equal length",
    ]  # the baseline has no proxy


@given(st.integers(1, 40), st.integers(1, 40))
def test_samples_meet_evenly(n, m):
    one, other = length_control.pairs(n, m)
    assert len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(one)
    for indices, count in ((one, n), (other, m)):
        meetings = np.bincount(indices, minlength=count)
        assert meetings.max() - meetings.min() <= 1
        assert meetings.min() >= min(5, min(n, m))
