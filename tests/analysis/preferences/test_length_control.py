"""The win rate at equal length."""

import math

import numpy as np
import pytest
import toy_preferences as toy
from hypothesis import given
from hypothesis import strategies as st
from toy_preferences import scored

from analysis.preferences import (
    contenders,
    length_control,
)

RNG = np.random.default_rng(0)


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
    one, other = scored(wins.astype(float), a), scored(np.full(wins.shape, 0.5), b)
    mean = length_control.rate({0: one}, {0: other}, "gold")
    assert mean.value == pytest.approx(1 / (1 + math.exp(-0.3)), abs=0.03)
    assert mean.low < mean.value < mean.high < mean.low + 0.1
    assert mean.over == "items"


def test_newton_is_at_the_top_of_the_likelihood():
    x, wins = np.stack([np.ones(50), RNG.normal(size=50)], axis=1), RNG.integers(0, 3, 50) / 2
    best = length_control.logistic(x, wins)

    def loss(w):
        logits = x @ w
        return np.sum(np.logaddexp(0, logits) - wins * logits) + w @ w / 2 / length_control.PRIOR**2

    assert all(loss(best) < loss(best + step) for step in RNG.normal(0, 0.01, (50, 2)))


def test_length_control_is_a_half_against_itself_and_changes_sides():
    own = scored(RNG.normal(size=(30, 4)), RNG.integers(5, 30, (30, 4)))
    other = scored(RNG.normal(0.5, 1, (30, 4)), RNG.integers(5, 40, (30, 4)))
    assert length_control.rate({0: own}, {0: own}, "gold").value == pytest.approx(0.5)
    there, back = (length_control.rate({0: a}, {0: b}, "gold").value for a, b in ((own, other), (other, own)))
    assert there + back == pytest.approx(1)


def test_a_policy_that_always_wins_has_a_finite_rate():
    one, other = (
        scored(np.ones((20, 3)), np.full((20, 3), 9)),
        scored(np.zeros((20, 3)), np.full((20, 3), 9)),
    )
    mean = length_control.rate({0: one, 1: scored(np.ones((20, 3)))}, {0: other, 1: other}, "gold")
    assert 0.99 < mean.value <= 1
    assert mean.over == "seeds"


def test_the_page_says_what_is_left_at_equal_length():
    a, b, wins = judged(0.0, 2.0, items=1000, longer=6.0)
    one, other = (
        scored(wins.astype(float), a, wins.astype(float)),
        scored(np.full(wins.shape, 0.5), b),
    )
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


def test_proxies_are_compared_each_with_itself(run, preferred):
    start = contenders.baseline(run, preferred.policies)
    few = next(one for one in preferred.policies if one.name == "few-labels")
    assert contenders.proxies(run, preferred.policies) == 2
    assert contenders.in_arm(run, start, "few-labels").at == "few-labels/sft"
    assert contenders.in_arm(run, few, "dpo") == few  # not evaluated there
    row = preferred.tables["length_controlled"].set_index("of").loc["few-labels"]
    own, other = (
        [toy.rows_of(run, "few-labels", name, seed) for seed in run.seeds] for name in ("after", "sft")
    )
    wins = [
        (x > y) + 0.5 * (x == y)
        for mine, theirs in zip(own, other, strict=True)
        for a, b in zip(mine, theirs, strict=True)
        for x in a["proxy"]
        for y in b["proxy"]
    ]
    assert row["proxy/win_rate"] == pytest.approx(np.mean(wins))


@given(st.integers(1, 40), st.integers(1, 40))
def test_samples_meet_evenly(n, m):
    one, other = length_control.pairs(n, m)
    assert len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(one)
    for indices, count in ((one, n), (other, m)):
        meetings = np.bincount(indices, minlength=count)
        assert meetings.max() - meetings.min() <= 1
        assert meetings.min() >= min(5, min(n, m))
