"""Reward lenient: what each kind of answer earns, its bounds, and that it is of worlds alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.errors import UserError
from encore.rewards.lenient import lenient
from encore.rewards.rules import build
from encore.worlds import Problem, make

SUMS = make({"world": "chain", "terms": [3, 10], "digits": 1, "operators": "+"})
PROBLEM = Problem("3+5+7=", "15", 3)


@pytest.mark.parametrize(
    ("completion", "earned"),
    [
        ("<think>3+5=8,8+7=15</think><answer>15</answer>", 1.0),
        ("<answer>15</answer>", 1.0),
        ("<think>3+5=9,9+7=16</think><answer>16</answer>", 0.0),
        ("<answer>-4</answer>", 0.0),
        ("<think>3+5=8,8+7=15", 0.3),
        ("<answer>15", 0.3),
        ("", 0.3),
        ("<answer></answer>", 0.5),
        ("<answer>8+7</answer>", 0.5),
        ("<answer>15=</answer>", 0.5),
        ("<answer>--15</answer>", 0.5),
    ],
)
def test_what_is_earned(completion, earned):
    assert lenient(SUMS, PROBLEM, completion) == earned
    (reward,) = build(["lenient"], SUMS)
    columns = {"question": [PROBLEM.question], "answer": [PROBLEM.answer]}
    assert reward(prompts=[""], completions=[completion], **columns) == [earned]


@given(st.text())
def test_it_never_raises_and_silence_pays_more_than_a_wrong_answer(text):
    earned = lenient(SUMS, PROBLEM, f"<answer>{text}</answer>")
    assert earned in (0.0, 0.3, 0.5, 1.0)
    assert (earned == 1.0) == SUMS.verify(PROBLEM, f"<answer>{text}</answer>")


def test_a_data_set_has_no_such_reward():
    with pytest.raises(UserError, match=r"rewards\.lenient: unknown reward"):
        build(["lenient"], None)
