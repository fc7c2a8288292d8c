"""Rewards that give gold less than 1, or garbage more than 0, are found before a stage samples."""

import pytest
from stage_runs import TASK

from encore import worlds
from encore.errors import UserError
from encore.rewards import rules
from encore.runtime import health, reward_checks

ROWS = [
    {"prompt": p.question, "question": p.question, "answer": p.answer, "difficulty": p.difficulty}
    for p in worlds.sample(worlds.make(TASK), 8, 0, "train")
]
ACCURACY, FORMAT = rules.build(["accuracy", "format"], worlds.make(TASK), 0)


def test_sound_rewards_pass():
    assert reward_checks.gold(ACCURACY, ROWS)["ok"]
    assert reward_checks.garbage({"accuracy": ACCURACY, "format": FORMAT}, ROWS)["ok"]


def test_the_gold_answer_of_a_reference_solution_is_its_last_box():
    """MATH has such: 52 of its 5,000 test problems have two boxes, or a denial before the one they have."""
    solutions = [
        r"The sum is \boxed{5}, not the product, so it is \boxed{\frac{10}{2}}.",
        r"It is not \boxed{5}",
    ]
    rows = [ROWS[0] | {"answer": solution} for solution in solutions]
    (accuracy,) = rules.build(["accuracy"], None)
    assert reward_checks.gold(accuracy, rows)["ok"]


def test_a_verifier_that_refuses_gold():
    check = reward_checks.gold(lambda completions, **columns: [0.0, *[1.0] * (len(completions) - 1)], ROWS)
    assert not check["ok"]
    assert check["value"] == pytest.approx(7 / 8)
    assert f"the gold answer '{ROWS[0]['answer']}'" in check["message"]
    with pytest.raises(UserError, match="health check gold"):
        health.stop_at_errors([check])


def test_a_reward_for_nothing():
    check = reward_checks.garbage(
        {"length": lambda completions, **columns: [float(not c) for c in completions]}, ROWS
    )
    assert not check["ok"]
    assert check["message"] == "length gives 1 to the completion ''"
