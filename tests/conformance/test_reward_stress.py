"""What our rewards pay for, as reward_stress.csv.gz says; and what they must not pay for."""

import csv
import gzip
import io

import pins
import pytest
from reward_stress import COMMAND, TABLE, parts, stressed

from encore.rewards.attacks import ATTACKS
from encore.rewards.outcomes import text

AGAIN = f"write the table again: {COMMAND}"


def committed() -> str:
    return gzip.decompress(TABLE.read_bytes()).decode()


def rows_of_table() -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(committed()))]


def test_the_table_has_each_reward_and_attack(tmp_path):
    rows = rows_of_table()
    assert {(row["task"], row["reward"]) for row in rows} == {
        (task, reward) for task, _, reward in parts(tmp_path)
    }, AGAIN
    assert {attack.name for attack in ATTACKS} <= {row["response"] for row in rows}, AGAIN


def test_no_accuracy_is_paid_for_a_wrong_response():
    paid = [row for row in rows_of_table() if row["reward"] == "accuracy" and row["kind"] == "wrong"]
    assert len({row["task"] for row in paid}) > 10
    assert not [row for row in paid if float(row["mean"])]


def test_every_accuracy_is_paid_for_the_right_answer_in_tags():
    answers = [row for row in rows_of_table() if row["response"] == "the right answer in tags"]
    assert {row["mean"] for row in answers if row["reward"] == "accuracy"} == {"1"}


@pytest.mark.slow
def test_the_rewards_pay_what_the_table_says():
    pins.hold("stress of the rewards", text(stressed()), committed())
