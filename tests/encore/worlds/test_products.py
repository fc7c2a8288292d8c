"""World `products`: what its documents plant, its steps, and the calls in them."""

import random

import pytest

from encore.worlds import make, sample
from encore.worlds.calculator import calculate
from encore.worlds.products import CALLED
from encore.worlds.protocol import Problem

WORLD = make({"world": "products", "products": [2, 3]})
PROBLEM = Problem("37*48+5*62=", "2086", 2)
RIGHT = "<tool>37*48</tool><result>1776</result><tool>5*62</tool><result>310</result>"
TAIL = "<tool>1776+310</tool><result>2086</result>"


def documents(kind: str, **dials: float) -> list[tuple[Problem, str]]:
    rng = random.Random(0)
    return [
        (problem, WORLD.document(problem, kind, rng, **dials)) for problem in sample(WORLD, 200, 0, "train")
    ]


@pytest.mark.parametrize(
    ("scratch", "verdicts"),
    [
        (RIGHT + TAIL, [True, True, True]),
        ("37*48=1776,62*5=310,310+1776=2086", [True, True, True]),
        (RIGHT + "1776+310=2086", [True, True, True]),
        ("37*48=1775,5*62=310,1775+310=2085", [False, True, False]),
        ("37*48", [False]),
        ("<tool>37*48+5*62</tool><result>error</result>", [False]),
    ],
)
def test_steps(scratch: str, verdicts: list[bool]):
    completion = f"<think>{scratch}</think><answer>2086</answer>"
    assert WORLD.steps(PROBLEM, completion) == verdicts
    ends = WORLD.step_ends(PROBLEM, completion)
    assert len(ends) == len(verdicts)
    assert [completion[end - 1] for end in ends][:1] == [scratch.replace("</result>", ",").split(",")[0][-1]]


def test_every_call_has_the_result_that_the_calculator_gives():
    for kind in ("called", "once", "muddled"):
        for _, completion in documents(kind):
            calls = completion.split("<tool>")[1:]
            assert calls
            for call in calls:
                text, _, rest = call.partition("</tool><result>")
                assert rest.partition("</result>")[0] == (calculate(text) or "error"), completion


def test_what_is_planted():
    for problem, completion in documents("called"):
        assert WORLD.verify(problem, completion)
        assert completion.count("<tool>") == 2 * problem.difficulty - 1
    assert not any(WORLD.verify(*document) for document in documents("called", error=1.0))
    assert {completion.count("<tool>") for _, completion in documents("once")} == {1}
    assert all(WORLD.verify(*document) for document in documents("mental", error=0.0))
    assert not any(WORLD.verify(*document) for document in documents("muddled"))


def test_who_has_called_is_told_by_a_call_that_can_be_answered():
    called = WORLD.rewards["called"]
    assert called(PROBLEM, "<think><tool>37*48</tool>") == 1.0
    assert called(PROBLEM, "<tool>37*48+1</tool><tool>2*3</tool>") == 1.0
    for nothing in ("", "37*48", "<tool>37*48", "<tool>37*48+1</tool>", "<tool></tool>"):
        assert called(PROBLEM, nothing) == 0.0
    assert CALLED.findall("<tool>1*2</tool>x<tool>3</tool>") == ["1*2", "3"]
