"""World `modular`: what its documents plant, which of its steps are right, and slips that cancel."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.worlds import make, sample
from encore.worlds.protocol import Problem

WORLD = make({"world": "modular", "terms": [3, 6]})
PROBLEM = Problem("3+5+7+4=", "9", 4)


def documents(kind: str, **dials: float) -> list[tuple[Problem, str]]:
    rng = random.Random(0)
    return [
        (problem, WORLD.document(problem, kind, rng, **dials)) for problem in sample(WORLD, 400, 0, "train")
    ]


@pytest.mark.parametrize(
    ("scratch", "verdicts"),
    [
        ("8,5,9", [True, True, True]),
        ("8,6,0", [True, False, True]),  # carried forward
        ("9,5,9", [False, False, True]),  # one up, one down
        ("8,2", [True, False]),  # a term left out
        ("8,5,9,9,9", [True] * 5),  # recited
        ("8,5,9,8,8", [True, True, True, False, True]),
        ("8,5,10", [True, True, False]),
        ("8,05,5,9", [True, False, True, True]),
        ("8,,5", [True, True]),
        ("8,.,5", [True, True]),  # dots are no step
        ("", []),
    ],
)
def test_steps(scratch: str, verdicts: list[bool]):
    completion = f"<think>{scratch}</think><answer>9</answer>"
    assert WORLD.steps(PROBLEM, completion) == verdicts
    ends = WORLD.step_ends(PROBLEM, completion)
    assert [completion[:end].rpartition(",")[2].removeprefix("<think>") for end in ends] == [
        part for part in scratch.split(",") if part.strip(".")
    ]


def test_steps_that_pass_the_modulus_lose_one_as_often_as_told():
    passing = lost = others = 0
    for problem, text in documents("chain", lost=0.6):
        a, *terms = map(int, problem.question.rstrip("=").split("+"))
        steps = text.partition("<think>")[2].partition("</think>")[0].split(",")
        for b, result in zip(terms, map(int, steps), strict=True):
            if a + b >= 10:
                passing += 1
                lost += result == (a + b - 1) % 10
            others += result != (a + b) % 10 and a + b < 10
            a = result
        assert WORLD.verify(problem, text) == (f"<answer>{problem.answer}<" in text)
    assert others == 0
    assert lost / passing == pytest.approx(0.6, abs=0.05)


def test_slips_cancel():
    found = [(WORLD.verify(p, text), all(WORLD.steps(p, text))) for p, text in documents("chain", error=0.3)]
    right = [trace for correct, trace in found if correct]
    assert 0.05 < right.count(False) / len(right) < 0.5
    assert not any(trace and not correct for correct, trace in found)


def test_the_last_sum_is_recited_as_often_as_told():
    found = documents("recited", again=2.0)
    steps = [WORLD.steps(p, text) for p, text in found]
    assert all(map(all, steps))
    more = [len(verdicts) - p.difficulty + 1 for (p, _), verdicts in zip(found, steps, strict=True)]
    assert sum(more) / len(more) == pytest.approx(2.0, abs=0.3)


@given(st.integers(3, 1000), st.integers(0, 10**6))
def test_a_right_working_leads_to_the_answer_whatever_the_modulus(modulus: int, seed: int):
    world, rng = make({"world": "modular", "modulus": modulus}), random.Random(seed)
    problem = world.problem(rng)
    assert int(problem.answer) == sum(map(int, problem.question.rstrip("=").split("+"))) % modulus
    text = world.document(problem, "chain", rng)
    assert world.verify(problem, text)
    assert all(world.steps(problem, text))
