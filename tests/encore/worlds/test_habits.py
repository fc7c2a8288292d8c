"""Habits of a search: one mark each, in documents that were made with it and in no others."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.worlds import Problem, make
from encore.worlds.habits import HABITS

PROBLEM = Problem("3,5,7:56", "(3+5)*7", 3)
WORLD = make({"world": "countdown", "numbers": [3, 4], "largest": 9})
SHOWN = {  # of the dials below: what every document shows, and what none does
    "single": ({"subgoals"}, {"verification", "sound_checks", "backtracking", "backward_chaining", "idling"}),
    "checked": (
        {"subgoals", "verification", "sound_checks", "backtracking"},
        {"backward_chaining", "idling"},
    ),
    "search": ({"subgoals", "backtracking"}, {"verification", "sound_checks", "backward_chaining", "idling"}),
    "filler": ({"idling"}, {"verification", "sound_checks", "backtracking", "subgoals", "backward_chaining"}),
    "direct": (set(), set(HABITS)),
}


def thought(scratch: str) -> str:
    return f"<think>{scratch}</think><answer>1</answer>"


@pytest.mark.parametrize(
    ("scratch", "habits"),
    [
        ("3*5=15,15+7=22:56no", {"verification": 1, "sound_checks": 1, "subgoals": 1}),
        ("3+5=8:56no8*7=56:56yes", {"verification": 1, "sound_checks": 1, "backtracking": 1}),
        ("3*5=15,15+7=22:56yes", {"verification": 1, "sound_checks": 0, "subgoals": 1}),
        ("8*7=56:56no3+5=8:56no", {"verification": 1, "sound_checks": 0.5, "backtracking": 1}),
        ("3+5=8:9no", {}),  # held against another target
        ("3*5=15no", {}),
        ("3*5=15no7+3=10", {"backtracking": 1}),
        ("3*5=15no..7+3=10", {"backtracking": 1, "idling": 1}),
        ("56/7=8,3+5=8", {"backward_chaining": 1}),
        ("63-56=7", {"backward_chaining": 1}),
        ("3+5=8no56/7=8", {"backward_chaining": 1, "backtracking": 1}),
        ("3+5=8,56/7=8", {}),  # not where a try begins
        ("3+5=8,8.*7=56", {"subgoals": 1, "idling": 1}),
        ("", {}),
        ("no", {}),
    ],
)
def test_each_habit_has_a_mark_of_its_own(scratch, habits):
    found = {name: habit(PROBLEM, thought(scratch)) for name, habit in HABITS.items()}
    assert found == dict.fromkeys(HABITS, 0.0) | habits


def test_a_target_that_is_given_is_no_beginning_from_the_target():
    assert HABITS["backward_chaining"](Problem("2,5,6:2", "2*(6-5)", 3), thought("6-5=1,2*1=2")) == 0
    assert HABITS["backward_chaining"](Problem("2,5,6:2", "2*(6-5)", 3), thought("2*5=10")) == 0


@given(st.sampled_from([*SHOWN]), st.integers(0, 10**6))
@settings(deadline=None)
def test_documents_show_the_habits_that_they_were_made_with(kind, seed):
    rng = random.Random(seed)
    problem = WORLD.problem(rng)
    dials = {"tries": 50.0} if kind in ("search", "checked") else {"mean": 50.0} if kind == "filler" else {}
    text = WORLD.document(problem, kind, rng, **dials)
    always, never = SHOWN[kind]
    if text.count("no") == 0:  # once in fifty
        always = always - {"backtracking"}
    if "." not in text:
        always = always - {"idling"}
    assert all(HABITS[name](problem, text) == 1 for name in always), text
    assert all(HABITS[name](problem, text) == 0 for name in never), text


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(deadline=None)
def test_checks_are_sound_whether_or_not_the_answer_is_right(seed, right):
    rng = random.Random(seed)
    problem = WORLD.problem(rng)
    text = WORLD.document(problem, "checked", rng, tries=2.0, right=right)
    assert all(WORLD.steps(problem, text))
    assert HABITS["sound_checks"](problem, text) == 1
    assert ("yes" in text) == WORLD.verify(problem, text)


@given(st.integers(0, 10**6))
@settings(deadline=None)
def test_backward_work_begins_at_the_target_and_every_step_is_right(seed):
    rng = random.Random(seed)
    problem = WORLD.problem(rng)
    text = WORLD.document(problem, "backward", rng)
    assert WORLD.verify(problem, text)
    assert all(WORLD.steps(problem, text))
    numbers, _, target = problem.question.partition(":")
    if problem.difficulty == 3 and target not in numbers.split(","):
        assert HABITS["backward_chaining"](problem, text) == 1


@given(st.text("0123456789+-*/=:,.noyes<think>", max_size=200))
def test_no_text_is_too_odd(text):
    for completion in (text, thought(text)):
        assert all(0 <= habit(PROBLEM, completion) <= 1 for habit in HABITS.values())
        assert len(WORLD.steps(PROBLEM, completion)) == len(WORLD.step_ends(PROBLEM, completion))


def test_a_division_by_zero_is_a_wrong_step():
    assert WORLD.steps(Problem("3,5,0:5", "5", 3), thought("5/0=5")) == [False]
