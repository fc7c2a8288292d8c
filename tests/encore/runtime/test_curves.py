"""From a log history to curve.csv and final scalars."""

import pytest

from encore.runtime import curves

HISTORY = [
    {"step": 1, "epoch": 0.1, "reward": 0.1, "step_time": 2.0, "num_tokens": 100.0},
    {"step": 2, "epoch": 0.2, "reward": 0.2, "step_time": 2.0, "num_tokens": 100.0, "length/correct": None},
    *({"step": n, "reward": n / 10, "step_time": 1.0, "num_tokens": 100.0 * n} for n in range(3, 11)),
    {"step": 10, "train_runtime": 3.0, "train_loss": 1.0, "total_flos": 5},
]


def test_rows_without_bookkeeping_missing_values_and_the_summary():
    rows = curves.rows(HISTORY)
    assert {name for _, name, _ in rows} == {"reward", "step_time", "num_tokens"}
    assert rows[:3] == [(1, "num_tokens", 100.0), (1, "reward", 0.1), (1, "step_time", 2.0)]


def test_the_order_of_keys_does_not_matter():
    turned = [dict(reversed(entry.items())) for entry in HISTORY]
    assert curves.rows(turned) == curves.rows(HISTORY)


def test_no_time_in_deterministic_outputs():
    rows = curves.deterministic(curves.rows(HISTORY))
    assert {name for _, name, _ in rows} == {"reward", "num_tokens"}


def test_timing():
    rows = curves.timing(curves.rows(HISTORY))
    assert (1, "tokens_per_s", 50.0) in rows
    assert (2, "tokens_per_s", 0.0) not in rows  # a step that reuses a rollout has no new tokens
    assert (3, "tokens_per_s", 200.0) in rows


def test_scalars_name_what_they_average():
    scalars = curves.scalars([row for row in curves.rows(HISTORY) if row[1] == "reward"])
    assert scalars == {"last/reward": 1.0, "last_fifth/reward": (0.9 + 1.0) / 2}
    assert curves.scalars([]) == {}


def test_the_first_fifth():
    rows = curves.rows(HISTORY)
    assert curves.first_fifth(rows, "reward") == pytest.approx(0.15)  # steps 1 and 2 of 10
    assert curves.first_fifth([row for row in rows if row[0] > 2], "reward") is None
    assert curves.first_fifth([], "reward") is None
    assert curves.first_fifths(rows, ["reward", "kl"]) == {"first_fifth/reward": pytest.approx(0.15)}


def test_text_keeps_every_bit():
    value = 0.1 + 0.2
    text = curves.text([(3, "reward", value)])
    assert text == f"step,metric,value\n3,reward,{value!r}\n"
    assert float(text.splitlines()[1].split(",")[2]) == value
