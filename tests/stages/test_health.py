"""Health checks find what they are for, and nothing else."""

import pytest
from stage_runs import TASK

from recipes import rewards, worlds
from recipes.errors import UserError
from recipes.stages import health

ROWS = [
    {"prompt": p.question, "question": p.question, "answer": p.answer, "difficulty": p.difficulty}
    for p in worlds.sample(worlds.make(TASK), 8, 0, "train")
]
ACCURACY, FORMAT = rewards.build(["accuracy", "format"], worlds.make(TASK), 0)


def test_sound_rewards_pass():
    assert health.gold(ACCURACY, ROWS)["ok"]
    assert health.garbage({"accuracy": ACCURACY, "format": FORMAT}, ROWS)["ok"]


def test_a_verifier_that_refuses_gold():
    found = health.gold(lambda completions, **columns: [0.0, *[1.0] * (len(completions) - 1)], ROWS)
    assert not found["ok"]
    assert found["value"] == pytest.approx(7 / 8)
    assert f"the gold answer '{ROWS[0]['answer']}'" in found["message"]
    with pytest.raises(UserError, match="health check gold"):
        health.stop_at_errors([found])


def test_a_reward_for_nothing():
    found = health.garbage(
        {"length": lambda completions, **columns: [float(not c) for c in completions]}, ROWS
    )
    assert not found["ok"]
    assert found["message"] == "length gives 1 to the completion ''"


@pytest.mark.parametrize(
    ("longest", "cap", "limit", "ok"), [(10, 20, 30, True), (11, 20, 30, False), (9, 9, None, True)]
)
def test_context(longest, cap, limit, ok):
    assert health.context(longest, cap, limit)["ok"] is ok


def test_unknown_tokens():
    tokenizer = worlds.tokenizer([worlds.make(TASK)])
    assert health.known_tokens(tokenizer, ["<user>1+2=<assistant>"], "prompt")["ok"]
    assert not health.known_tokens(tokenizer, ["<user>1+2=<assistant>", "What is 1+2?"], "prompt")["ok"]


def test_template_of_the_base():
    assert health.same_template("a", "a")["ok"]
    assert health.same_template("a", None)["ok"]
    other = health.same_template("a", "b")
    assert not other["ok"]
    assert health.stop_at_errors([other]) == [other]  # a warning stops nothing


@pytest.mark.parametrize(
    ("name", "metric", "good", "bad"),
    [
        ("truncation", "completions/clipped_ratio", 0.09, 0.11),
        ("zero_variance", "frac_reward_zero_std", 0.49, 0.51),
        ("entropy", "entropy", 0.11, 0.09),
    ],
)
def test_warnings_of_a_training(name, metric, good, bad):
    for value, ok in ((good, True), (bad, False)):
        curve = [(1, "entropy", 1.0), (10, "entropy", 0.5)]
        scalars = {"last_fifth/entropy": 0.5, f"last_fifth/{metric}": value}
        (found,) = [one for one in health.training(curve, scalars) if one["check"] == name]
        assert found["ok"] is ok
        assert found["severity"] == "warning"


def test_nothing_measured_nothing_said():
    assert health.training([], {}) == []
