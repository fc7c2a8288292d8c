"""What is said of a reward model, on comparisons whose answers are known."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore import worlds
from encore.data import preferences
from encore.errors import UserError
from encore.rewards import quality
from encore.stages.comparisons import demonstration_ids
from encore.stages.reward_model import above_chance, mean_curve, renamed

RNG = np.random.default_rng(0)


def row(responses: list[str], scores: list[float], **columns):
    ranking = sorted(range(len(scores)), key=lambda i: -scores[i])
    cut = [False] * len(scores)
    return {
        "prompt": "p",
        "responses": responses,
        "scores": scores,
        "ranking": ranking,
        "truncated": cut,
    } | columns


def test_pairs_less_equal_responses_and_ties():
    found = preferences.better_worse(row(["a", "b", "c", "a"], [1.0, 3.0, 1.0, 0.0]))
    assert found == [(1, 0), (1, 2), (1, 3), (2, 3)]  # 0 and 2 are tied, 0 and 3 are equal


def measured(rows, rewards, lengths=None):
    lengths = lengths or [[len(text) for text in row["responses"]] for row in rows]
    sequences = [[[0] * n for n in of] for of in lengths]
    return quality.measured(rows, sequences, np.array(rewards, dtype=float))


def test_arrays_over_pairs():
    rows = [row(["aaa", "b"], [0.5, 2.0]), row(["cc", "d", "eeee"], [3.0, 2.0, 1.0])]
    found = measured(rows, [1.0, 4.0, 0.0, 1.0, -2.0])
    assert found.gap.tolist() == [3.0, -1.0, 2.0, 3.0]
    assert found.margin.tolist() == [1.5, 1.0, 2.0, 1.0]
    assert found.longer.tolist() == [-2, 1, -2, -3]
    assert found.pair_prompt.tolist() == [0, 1, 1, 1]
    assert found.prompt.tolist() == [0, 0, 1, 1, 1]
    assert quality.accuracy(found.gap) == 0.75


def test_accuracy_and_loss_of_ties():
    gap = np.array([0.0, 0.0, 2.0, -1.0])
    assert quality.accuracy(gap) == 0.5
    assert quality.loss(np.zeros(3)) == pytest.approx(np.log(2))


@pytest.mark.parametrize(("sharpness", "honest"), [(1.0, True), (3.0, False)])
def test_calibration_tells_the_honest_from_the_overconfident(sharpness, honest):
    true = RNG.normal(0, 2, 20_000)  # difference of utilities
    better = np.where(RNG.random(len(true)) < 1 / (1 + np.exp(-true)), 1, -1)
    rows = quality.calibration(sharpness * true * better)
    assert sum(one["count"] for one in rows) == len(true)
    assert all(one["bin_low"] <= one["predicted"] <= one["bin_high"] for one in rows)
    error = quality.calibration_error(rows)
    assert (error < 0.01) == honest
    assert honest or error > 0.05
    table = [*csv.DictReader(io.StringIO(quality.text(rows)))]
    assert [float(one["observed"]) for one in table] == [one["observed"] for one in rows]
    assert list(table[0]) == ["bin_low", "bin_high", "predicted", "observed", "count"]


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=40))
def test_calibration_counts_every_pair(gaps):
    rows = quality.calibration(np.array(gaps))
    assert sum(row["count"] for row in rows) == len(gaps)
    right = sum(row["count"] * row["observed"] for row in rows) / len(gaps)
    assert right == pytest.approx(quality.accuracy(np.array(gaps)))


def test_accuracy_rises_with_the_margin():
    margin = RNG.exponential(1, 4000)
    gap = np.where(RNG.random(4000) < 1 / (1 + np.exp(-2 * margin)), 1.0, -1.0)
    found = quality.by_margin(gap, margin)
    parts = [found[f"accuracy/margin=q{i}"] for i in (1, 2, 3, 4)]
    assert parts == sorted(parts)
    assert found["margin/q1"] < found["margin/q4"]
    assert quality.by_margin(gap, np.ones(4000)) == {}  # a Hub data set says no more than which is better


def test_standard_error_takes_pairs_of_a_prompt_as_one():
    prompt = np.repeat(np.arange(100), 6)
    right = np.repeat(RNG.integers(0, 2, 100), 6) * 2.0 - 1  # all pairs of a prompt alike
    clustered = quality.standard_error(right, prompt)
    apart = quality.standard_error(right, np.arange(600))
    assert clustered == pytest.approx(apart * 6**0.5, rel=0.02)
    assert quality.standard_error(right[:6], prompt[:6]) == 0.5


@pytest.mark.parametrize("liking", [-1.0, 0.0, 1.0])
def test_length_bias(liking):
    """A reward that is `liking` times the length, and noise."""
    rows = [
        row(["a" * n for n in RNG.choice(30, 4, replace=False) + 1], list(RNG.random(4))) for _ in range(400)
    ]
    lengths = np.array([len(text) for one in rows for text in one["responses"]])
    found = quality.length_bias(measured(rows, liking * lengths + RNG.normal(0, 3, len(lengths))))
    assert found["length/correlation"] == pytest.approx(0.94 * liking, abs=0.06)
    assert found["length/preferred"] == pytest.approx(0.5 + 0.43 * liking, abs=0.05)
    assert found["length/preferred_by_labels"] == pytest.approx(0.5, abs=0.05)
    worse, better = found["accuracy/longer_is_worse"], found["accuracy/longer_is_better"]
    assert np.sign(round(better - worse, 1)) == liking


def test_report_is_of_the_members_mean():
    rows = [row(["aa", "b"], [1.0, 0.0]), row(["c", "dd"], [1.0, 0.0])]
    train = [measured(rows, [3.0, 1, 1, 0]), measured(rows, [2.0, 1, 1, 0])]
    held_out = [measured(rows, [3.0, 1, 0, 1]), measured(rows, [0.0, 1, 4, 0])]
    found, curve = quality.report({"train": train, "validation": held_out})
    assert found["accuracy/train"] == 1.0
    assert found["accuracy/validation"] == 1.0  # each member alone: a half
    assert (found["members/accuracy_mean"], found["accuracy/gap"]) == (0.5, 0.0)
    assert [one["count"] for one in curve] == [1, 1]
    empty = [measured([], [])]
    found, curve = quality.report({"train": train, "validation": empty})
    assert found.keys() == {"accuracy/train", "loss/train"}
    assert curve == []


def test_spread():
    raw = {"train": [np.array([1.0, 3.0]), np.array([10.0, 30.0])], "validation": [np.zeros(0)] * 2}
    found = quality.spread(raw, [2.0, 20.0], [1.0, 10.0])
    assert found["reward/train"] == 0.0
    assert found["members/disagreement"] == 0.0
    assert "reward/validation" not in found


@pytest.mark.parametrize(("accuracy", "ok"), [(0.5, False), (0.55, False), (0.7, True)])
def test_a_model_at_chance_is_warned_of(accuracy, ok):
    (check,) = above_chance({"accuracy/validation": accuracy, "accuracy/validation_se": 0.03})
    assert check["ok"] == ok
    assert check["severity"] == "warning"
    assert above_chance({}) == []


def test_curves():
    log = {"step": 2, "eval_accuracy": 0.7, "eval_loss": 0.6, "eval_margin": 0.1, "accuracy": 0.8}
    assert renamed(log) == {"step": 2, "accuracy/validation": 0.7, "loss/validation": 0.6, "accuracy": 0.8}
    assert mean_curve([[(1, "loss", 1.0), (2, "loss", 3.0)], [(1, "loss", 2.0)]]) == [
        (1, "loss", 1.5),
        (2, "loss", 3.0),
    ]


def test_demonstrations_that_are_too_long_have_no_part_in_the_zero():
    words = worlds.tokenizer([worlds.make({"world": "sort"})])
    rows = [{"prompt": "<user>3 1<assistant>", "completion": text} for text in ("1 3", "1 3 " * 9)]
    short, long = demonstration_ids(rows, words, None)
    assert demonstration_ids(rows, words, len(short)) == [short]
    assert short[-1] == words.eos_token_id
    assert demonstration_ids([], words, 1) == []
    with pytest.raises(UserError, match=f"all 1 demonstrations are longer than {len(short)} tokens"):
        demonstration_ids(rows[1:], words, len(short))
    assert len(long) > len(short)
