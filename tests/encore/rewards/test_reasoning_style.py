"""Reward reasoning_style: its parts, of a world's text and of English; what it does not read; its bounds."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.rewards.reasoning_style import PARTS, parts, reasoning_style
from encore.rewards.rules import build
from encore.worlds import Problem, make

QUESTION = "3+5+7+2="
CHAIN = "<think>3+5=8,8+7=15,15+2=17</think><answer>17</answer>"


def of(completion, question=QUESTION):
    return tuple(parts(question, completion)[name] for name in PARTS)


@pytest.mark.parametrize(
    ("completion", "scratchpad", "steps", "checks"),
    [
        (CHAIN, 1, 1, 0),
        ("3+5=8,8+7=15,15+2=17", 0, 1, 0),
        ("<think>3+5=8,8+7=15wait8+7=15</think><answer>15</answer>", 1, 1, 1),
        ("<think>3+5=8</think><answer>8</answer>", 1, 1 / 3, 0),
        ("<answer>17</answer>", 0, 0, 0),
        ("<think></think><answer>17</answer>", 0, 0, 0),
        ("<think> \n</think><answer>17</answer>", 0, 0, 0),
        ("<think>First, add. Then multiply. Finally, let me check.</think><answer>17</answer>", 1, 1, 1),
        ("<think>1. add\n2. multiply\n- done</think><answer>17</answer>", 1, 1, 0),
        ("<think>Step 1: add. Step 2: multiply.</think><answer>17</answer>", 1, 2 / 3, 0),
        ("<think>Against all waiters, some checkers.</think><answer>17</answer>", 1, 0, 0),
        ("<think>add</think><answer>wait, first check: 17=17</answer>", 1, 0, 0),
    ],
)
def test_marks_of_a_world_and_of_english(completion, scratchpad, steps, checks):
    assert of(completion)[:3] == pytest.approx((scratchpad, steps, checks))


def test_length_is_that_of_the_reasoning_against_the_question():
    thought = "<think>" + "." * 16 + "</think><answer>17</answer>"
    assert of(thought, "x" * 8)[3] == 0.5
    assert of(thought, "x" * 4)[3] == of(thought, "x")[3] == of(thought, "")[3] == 1.0
    assert of("<answer>" + "1" * 100 + "</answer>", "x")[3] == 0.0


def test_it_does_not_read_the_answer_nor_whether_a_step_is_right():
    wrong = "<think>3+5=1,1+7=1,1+2=1wait1+2=1......</think><answer>9</answer>"
    assert reasoning_style(Problem(QUESTION, "17", 4), wrong) == 1.0
    world = make({"world": "chain"})
    style, accuracy = build(["reasoning_style", "accuracy"], world)
    columns = {"question": [QUESTION] * 2, "answer": ["17"] * 2, "difficulty": [4] * 2}
    batch = {"prompts": ["p"] * 2, "completions": [wrong, CHAIN], "completion_ids": [[1]] * 2} | columns
    assert style.__name__ == "reasoning_style"
    assert accuracy(**batch) == [0.0, 1.0]
    high, low = style(**batch)
    assert (high, low) == (1.0, pytest.approx((1 + 1 + 0 + 20 / 32) / 4))
    (of_hub,) = build(["reasoning_style"], None)
    assert of_hub(**batch) == [high, low]


def test_documents_of_the_world_differ_as_they_are_meant_to():
    world, rng = make({"world": "chain", "terms": [5, 5]}), random.Random(0)
    problem = world.problem(rng)
    style = {
        kind: reasoning_style(problem, world.document(problem, kind, rng))
        for kind in ("direct", "truncated", "chain", "recheck")
    }
    assert style["direct"] == 0.0 < style["truncated"] < style["chain"] < style["recheck"]


PIECES = ["<think>", "</think>", "<answer>", "=", "wait", "é", "\n"]


@settings(max_examples=50)
@given(st.text(max_size=80), st.lists(st.sampled_from(PIECES)))
def test_any_text_scores_between_nothing_and_one(question, pieces):
    found = parts(question, "".join(pieces) + question)
    assert all(0.0 <= value <= 1.0 for value in found.values())
    assert tuple(found) == PARTS


@pytest.mark.parametrize("unit", [" ", "\n", "- ", "=", "step ", "1", "\ud800"])
def test_a_megabyte_is_read_at_once(unit):
    start = time.perf_counter()
    value = reasoning_style(Problem("q", "1", 0), "<think>" + unit * (1_000_000 // len(unit)))
    assert 0.0 <= value <= 1.0
    assert time.perf_counter() - start < 1
