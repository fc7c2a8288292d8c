"""Rewards of brevity: what counts as short, that a condition asks for a right answer, and their bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.rewards.brief import LIMIT, brief, brief_if_right
from encore.rewards.rules import build
from encore.worlds import Problem, make

SUMS = make({"world": "chain", "terms": [3, 10], "digits": 1, "operators": "+"})
PROBLEM = Problem("3+5+7=", "15", 3)  # 6 characters, so 12 of reasoning are short


@pytest.mark.parametrize(
    ("completion", "short", "right"),
    [
        ("<think>3+5=8,8+7=15</think><answer>15</answer>", 1, 1),
        ("<think>3+5=8,8+7=15,</think><answer>15</answer>", 0, 1),
        ("<think>3+5=8</think><answer>8</answer>", 1, 0),
        ("<answer>15</answer>", 1, 1),
        ("<think>3+5=8,8+7=15, wait", 0, 0),
        ("", 1, 0),
    ],
)
def test_what_is_short_and_what_is_right(completion, short, right):
    assert (brief(PROBLEM, completion), brief_if_right(SUMS, PROBLEM, completion)) == (short, short * right)
    rewards = build(["brief", "brief_if_right"], SUMS)
    columns = {"question": [PROBLEM.question], "answer": [PROBLEM.answer]}
    earned = [reward(prompts=[""], completions=[completion], **columns) for reward in rewards]
    assert earned == [[short], [short * right]]


@given(question=st.text(max_size=20), reasoning=st.text(alphabet="0123456789+=,", max_size=60))
def test_the_limit_is_a_multiple_of_the_question(question, reasoning):
    earned = brief(Problem(question, "1", 3), f"<think>{reasoning}</think><answer>1</answer>")
    assert earned == float(len(reasoning) <= LIMIT * len(question))


@given(st.text())
def test_they_never_raise(completion):
    assert brief(PROBLEM, completion) in (0.0, 1.0)
    assert brief_if_right(SUMS, PROBLEM, completion) <= brief(PROBLEM, completion)
