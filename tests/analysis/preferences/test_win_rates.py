"""Win rates against brute force, their intervals, and the rate at equal length."""

import numpy as np
import pytest
import toy_preferences as toy
from hypothesis import given
from hypothesis import strategies as st
from toy_preferences import scored

from analysis.preferences import win_rates
from analysis.preferences.replies import REFERENCE, Replies

RNG = np.random.default_rng(0)


def named(*items: int) -> tuple[tuple[int, str], ...]:
    return tuple((item, f"{item}?") for item in items)


@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=4),
       st.lists(st.integers(-2, 2), min_size=2, max_size=2))  # fmt: skip
def test_a_chance_is_that_of_all_pairs_ties_half(one, row):
    other = [row] * len(one)
    for chance, a, b in zip(win_rates.better(np.array(one), np.array(other)), one, other, strict=True):
        brute = [1.0 if x > y else 0.5 if x == y else 0.0 for x in a for y in b]
        assert chance == pytest.approx(sum(brute) / len(brute))


def test_the_matrix_is_that_of_brute_force_both_ways():
    gold = {name: {seed: scored(RNG.integers(0, 4, (5, 3)) + shift) for seed in (0, 1)}
            for name, shift in (("sft", 0), ("ppo", 1), ("dpo", 2))}  # fmt: skip
    matrix = win_rates.matrix(gold).set_index(["of", "against"])
    assert len(matrix) == 6
    for (one, other), row in matrix.iterrows():
        wins = [
            (x > y) + 0.5 * (x == y)
            for seed in (0, 1)
            for item in range(5)
            for x in gold[one][seed].scores["gold"][item]
            for y in gold[other][seed].scores["gold"][item]
        ]
        assert row.win_rate == pytest.approx(np.mean(wins))
        assert row.win_rate == pytest.approx(1 - matrix.loc[(other, one)].win_rate)
        assert 0 <= row.low <= row.win_rate <= row.high <= 1
    assert win_rates.names(matrix.reset_index()) == ["sft", "ppo", "dpo"]


def test_items_are_paired_by_their_number():
    one = Replies(named(3, 1, 2), {"gold": np.array([[3.0], [1.0], [2.0]])})
    other = Replies(named(1, 2, 9), {"gold": np.array([[0.5], [2.5], [0.0]])})
    assert win_rates.between({0: one}, {0: other}).tolist() == [[1.0, 0.0]]  # items 1 and 2


def test_seeds_that_share_both_policies_count_once():
    one, other = scored(RNG.normal(size=(4, 2))), scored(RNG.normal(size=(4, 2)))
    assert win_rates.between({0: one, 1: one}, {0: other, 1: other}).shape == (1, 4)
    assert win_rates.between({0: one, 1: one}, {0: other, 1: scored(other.scores["gold"])}).shape == (
        2,
        4,
    )
    assert not win_rates.estimate(win_rates.between({0: one}, {1: other}), crossed=True).n


@pytest.mark.parametrize("crossed", [True, False])
def test_the_interval_covers_when_items_and_seeds_both_vary(crossed):
    """0.6 is the mean of the law; pairing by item and seed must not make the interval too narrow."""
    for of_seeds in (0.05, 0.1):  # the plain percentile interval covers 86% of the latter
        hits, trials = 0, 200
        for trial in range(trials):
            rng = np.random.default_rng(trial)
            by_seed, by_item = rng.normal(0, of_seeds, (5, 1)), rng.normal(0, 0.2, (1 if crossed else 5, 60))
            chances = 0.6 + by_seed + by_item + rng.normal(0, 0.1, (5, 60))
            mean = win_rates.estimate(chances, crossed, draws=400)
            hits += mean.low <= 0.6 <= mean.high
        assert hits / trials > 0.9
    alike = win_rates.estimate(np.full((3, 7), 0.25), crossed)
    assert (alike.low, alike.value, alike.high) == pytest.approx((0.25, 0.25, 0.25))


def test_items_are_crossed_with_seeds_only_where_all_seeds_have_the_same():
    same = {seed: Replies(named(1, 2), {}) for seed in (0, 1)}
    other = same | {1: Replies(((1, "1?"), (2, "another")), {})}
    assert win_rates.same_items(same, same)
    assert not win_rates.same_items(same, other)


def test_the_matrix_is_by_gold_of_the_samples_on_disk(run, preferred):
    row = preferred.tables["win_rates"].set_index(["of", "against"]).loc[("kl-strong", "sft")]
    wins = []
    for seed in run.seeds:
        sides = [
            toy.rows_of(run, arm, name, seed)
            for arm, name in (("kl-strong", "after"), ("base-recipe", "sft"))
        ]
        for one, other in zip(*sides, strict=True):
            wins += [(x > y) + 0.5 * (x == y) for x in one["gold"] for y in other["gold"]]
    assert row.win_rate == pytest.approx(np.mean(wins))
    own = [toy.rows_of(run, "dpo", "after", seed) for seed in run.seeds]
    beaten = [
        (x > line["reference_gold"]) + 0.5 * (x == line["reference_gold"])
        for rows in own
        for line in rows
        for x in line["gold"]
    ]
    rival = preferred.tables["win_rates"].set_index(["of", "against"]).loc[("dpo", REFERENCE)]
    assert rival.win_rate == pytest.approx(np.mean(beaten))


def test_the_matrix_is_drawn_with_every_number(preferred):
    figure = win_rates.draw(preferred.tables["win_rates"])
    (axis,) = figure.axes
    numbers = [text.get_text() for text in axis.texts]
    assert len(numbers) == 8 * 8
    assert [label.get_text() for label in axis.get_yticklabels()][:2] == ["base  1", "sft  2"]
