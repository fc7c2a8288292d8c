"""World countdown: expressions against Python, gold answers against reasoning-gym, steps and search."""

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reasoning_gym.games.countdown import CountdownConfig, CountdownDataset

from encore.worlds import Problem, make, sample
from encore.worlds.countdown import attempt
from encore.worlds.expressions import makes, reach, work_out

PROBLEM = Problem("3,5,7:56", "(3+5)*7", 3)
WORLD = make({"world": "countdown"})
expressions = st.recursive(
    st.integers(0, 99).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", " * ", " - "]), inner).map("".join),
        inner.map("({})".format),
    ),
    max_leaves=8,
)


@given(expressions)
def test_an_expression_has_the_value_python_gives_it(expression):
    work = work_out(expression)
    if len(expression) > 100:
        assert work is None
    else:
        assert work is not None
        assert work.value == eval(expression) == eval(work.expression)
        assert all(eval(step.replace("=", "==")) for step in work.steps)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=6), st.integers(0, 10**6))
def test_a_random_try_uses_each_number_once(numbers, seed):
    work = attempt(numbers, random.Random(seed))
    assert sorted(work.numbers) == sorted(numbers)
    assert work.value == eval(work.expression)
    assert work_out(work.expression).value == work.value
    assert all("-" not in step.partition("=")[2] for step in work.steps)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=6), st.integers(0, 10**6))
def test_sums_and_differences_are_tried_from_left_to_right(numbers, seed):
    work = attempt(numbers, random.Random(seed), "+-")
    assert sorted(work.numbers) == sorted(numbers)
    assert work.value == eval(work.expression) >= 0
    assert not set("()*") & set(work.expression)
    results = [step.partition("=")[2] for step in work.steps]
    assert [step.split("+")[0].split("-")[0] for step in work.steps[1:]] == results[:-1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 + 5", 8),
        (" (3 + 5) * 7 ", 56),
        ("(1 + 2) / 3", 1),
        ("6/4", Fraction(3, 2)),
        ("1/3*3", 1),
        ("8/(3-8/3)", 24),
        ("7-(5-3)", 5),
    ],
)
def test_spaces_and_exact_division(text, value):
    work = work_out(text)
    assert work.value == value
    assert type(work.value) is type(value)
    assert work_out(work.expression).value == value


@given(st.lists(st.integers(1, 99), min_size=3, max_size=3), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_what_can_be_reached_is(numbers, seed):
    target = attempt(numbers, random.Random(seed)).value
    assert makes(work_out(reach(numbers, target).expression), numbers, target)


def test_division_is_tried_and_what_cannot_be_reached_is_told():
    assert reach([8, 8, 3, 3], 24).expression == "8/(3-8/3)"
    assert reach([1, 1, 1], 50) is None
    assert reach([4], 4).expression == "4"


NOT_EXPRESSIONS = """ () 3+ +3 -3 3**2 3/0 3/(5-5) 3//5 03 3_0 0x3 3.0 1e3 \uff13+5 a (3 3,5 3==3
__import__('os')"""


NONE = ["", " ", "3 5", "3\n", "3\t+5", "(" * 99, "3" * 101, *NOT_EXPRESSIONS.split()]


@pytest.mark.parametrize("text", NONE)
def test_anything_else_is_no_expression(text):
    assert work_out(text) is None


@pytest.mark.parametrize("text", ["(" * 49 + "3" + ")" * 49, "1+" * 49 + "1", "9" * 100, "9*" * 49 + "9"])
def test_the_deepest_and_largest_expressions_are_read(text):
    assert work_out(text).value == eval(text)


@pytest.mark.parametrize(
    ("expression", "right"),
    [
        ("(3+5)*7", True),
        ("7*(5+3)", True),
        ("7*5+7*3", False),
        ("7*8", False),
        ("(3+5)*7*1", False),
        ("56", False),
        ("3*5+7", False),
        ("( 3 + 5 ) * 7", True),
        ("7/(1/(3+5))", False),
        ("(5+3)/(1/7)", False),
        ("(3+5)*7=56", False),
    ],
)
def test_each_number_is_used_once_and_the_target_is_hit(expression, right):
    assert WORLD.verify(PROBLEM, f"<answer>{expression}</answer>") is right


def test_reasoning_gym_agrees_about_the_gold_answers():
    judge = CountdownDataset(CountdownConfig(seed=0))
    for problem in sample(WORLD, 50, 0, "train"):
        numbers, _, target = problem.question.partition(":")
        entry = {"metadata": {"numbers": [*map(int, numbers.split(","))], "target": int(target)}}
        assert judge.score_answer(problem.answer, entry) == 1.0


@pytest.mark.parametrize(
    ("scratch", "expected"),
    [
        ("3+5=8,8*7=56", [True, True]),
        ("3*5=15,15+7=22no3+5=8,8*7=56yes", [True] * 4),
        ("3+5=8no7-5=2", [True, True]),
        ("3+5=8,7-5=2", [True, False]),
        ("3+5=9,9*7=63", [False, True]),
        ("3-5=-2", [True]),
        ("4+5=9", [False]),
        ("3+5+7=15", [False]),
        ("......", []),
    ],
)
def test_steps(scratch, expected):
    assert WORLD.steps(PROBLEM, f"<think>{scratch}</think>") == expected


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(max_examples=50)
def test_search_is_sound_whether_or_not_it_ends_well(seed, right):
    rng = random.Random(seed)
    problem = WORLD.problem(rng)
    completion = WORLD.document(problem, "search", rng, tries=2.0, right=right)
    assert all(WORLD.steps(problem, completion))
    assert "yes</think>" in completion


def test_search_fails_as_often_as_asked():
    rng = random.Random(0)
    problems = [WORLD.problem(rng) for _ in range(2000)]
    texts = [WORLD.document(problem, "search", rng, tries=2.0, right=0.5) for problem in problems]
    assert sum(text.count("no") for text in texts) / 2000 == pytest.approx(2, abs=0.15)
    verified = [WORLD.verify(problem, text) for problem, text in zip(problems, texts, strict=True)]
    assert sum(verified) / 2000 == pytest.approx(0.5, abs=0.03)
