"""results/published/reward_stress.csv is what our rewards pay for now; and what they must never pay for."""

import csv
import io

import pins
import pytest
from reward_stress import COMMAND, TABLE, parts, stressed

from encore.rewards.attacks import ATTACKS
from encore.rewards.outcomes import text

AGAIN = f"write the table again: {COMMAND}"


def committed():
    return [*csv.DictReader(io.StringIO(TABLE.read_text(encoding="utf-8")))]


def test_the_table_has_each_reward_and_attack(tmp_path):
    rows = committed()
    assert {(row["task"], row["reward"]) for row in rows} == {
        (task, reward) for task, _, reward in parts(tmp_path)
    }, AGAIN
    assert {attack.name for attack in ATTACKS} <= {row["response"] for row in rows}, AGAIN


def test_no_accuracy_is_paid_for_a_wrong_response():
    paid = [row for row in committed() if row["reward"] == "accuracy" and row["kind"] == "wrong"]
    assert len({row["task"] for row in paid}) > 10
    assert not [row for row in paid if float(row["mean"])]


def test_every_accuracy_is_paid_for_the_right_answer_in_tags():
    answers = [row for row in committed() if row["response"] == "the right answer in tags"]
    assert {row["mean"] for row in answers if row["reward"] == "accuracy"} == {"1"}


@pytest.mark.slow
def test_the_rewards_pay_what_the_table_says():
    pins.hold("stress of the rewards", text(stressed()), TABLE.read_text(encoding="utf-8"))
