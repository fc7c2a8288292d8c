"""World functions: its programs run in the sandbox, tests shown and not shown, partial rewards."""

import random
import shutil
from types import SimpleNamespace

import pytest

from encore.errors import UserError
from encore.worlds import Problem, make, sample
from encore.worlds.functions import DO, done, given, put, unseen

WORLD = make({"world": "functions"})
visible, share_passed, special_cased = (
    WORLD.rewards[n] for n in ("visible", "share_passed", "special_cased")
)
PROBLEM = Problem("add3 mul2|2:10 5:16", "return (x+3)*2", 2)
needs_bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")


@pytest.mark.slow
@needs_bubblewrap
@pytest.mark.parametrize(
    ("body", "right", "shown", "share", "special"),
    [
        ("return (x+3)*2", 1, 1, 1, 0),
        ("return x*2+6", 1, 1, 1, 0),  # any program that does it
        ("y=x+3\nreturn y*2", 1, 1, 1, 0),
        ("return {2:10,5:16}[x]", 0, 1, 2 / 8, 1),
        ("return {2:10,5:16}.get(x,(x+3)*2)", 1, 1, 1, 0),
        ("return 10", 0, 0, 1 / 8, 0),
        ("return x+3*2", 0, 0, 0, 0),
        ("return 9**9**9**9", 0, 0, 0, 0),
        ("return", 0, 0, 0, 0),
        ("return (x+3)*2 if x>0 else 1/0", 0, 1, None, 1),
        ("import os\nos._exit(0)", 0, 0, 0, 0),
        ("print(10)\nreturn print(16)", 0, 0, 0, 0),
        ("", 0, 0, 0, 0),
    ],
)
def test_rewards(body, right, shown, share, special):
    completion = f"<answer>{body}</answer>"
    assert WORLD.verify(PROBLEM, completion) == bool(right)
    assert visible(PROBLEM, completion) == shown
    assert special_cased(PROBLEM, completion) == special
    if share is not None:
        assert share_passed(PROBLEM, completion) == share


@pytest.mark.slow
@needs_bubblewrap
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return (x+3)*2", ""),
        ("return {2:10,5:16}[x]", None),
        ("return x", "2:10 5:16"),
        ("1/0", "2:10 5:16"),
    ],
)
def test_feedback_shows_the_first_tests_that_fail_as_the_question_does(body, words):
    """They are tests of the problem, at most three, and never a test that passes."""
    told = WORLD.feedback(PROBLEM, f"<answer>{body}</answer>")
    tests = given(Problem(f"add3 mul2|{told}", "", 0))[1]
    assert tests.items() <= {**given(PROBLEM)[1], **unseen(PROBLEM)}.items()
    assert len(tests) == (0 if words == "" else 3)
    assert told.startswith(words) if words else not {2, 5} & tests.keys()


def test_a_step_is_what_python_makes_of_it():
    """Expressions are checked against the world's own arithmetic, brackets and all."""
    rng = random.Random(0)
    for _ in range(300):
        problem = WORLD.problem(rng)
        steps, tests = given(problem)
        expression = problem.answer.removeprefix("return ")
        for x, y in {**tests, **unseen(problem)}.items():
            assert eval(expression, {"x": x, "min": min, "max": max}) == y == done(steps, x)


def test_the_operations_are_all_there():
    assert [put("x", (name, 3)) for name in DO] == ["x+3", "x-3", "x*3", "x%3", "min(x,3)", "max(x,3)"]
    assert put("max(x,4)+3", ("mul", 2)) == "(max(x,4)+3)*2"
    assert put("max(x,4)", ("mul", 2)) == "max(x,4)*2"
    assert put("max(x,4)*2", ("min", 2)) == "min(max(x,4)*2,2)"


def test_tests_that_are_not_shown_are_others_and_the_same_every_time():
    for problem in sample(WORLD, 100, 0, "train"):
        shown, others = given(problem)[1], unseen(problem)
        assert len(others) == 6
        assert not {*shown} & {*others}
        assert unseen(Problem(problem.question, "", 0)) == others


def test_a_function_is_in_one_split_with_one_question():
    problems = [*sample(WORLD, 300, 0, "train"), *sample(WORLD, 300, 0, "test")]
    assert len({problem.question.partition("|")[0] for problem in problems}) == 600


@pytest.mark.parametrize(
    ("scratch", "expected"),
    [
        ("x+3;(x+3)*2", [True, True]),
        ("x+4;(x+4)*2", [False, True]),  # a slip that is carried on is one slip
        ("x+3;x+3*2", [True, False]),
        ("x+3;(x+3)*2;(x+3)*2", [True, True, False]),
        ("(x+3)*2", [False]),
        ("", []),
    ],
)
def test_steps(scratch, expected):
    assert WORLD.steps(PROBLEM, f"<think>{scratch}</think>") == expected


@needs_bubblewrap
def test_a_lookup_passes_what_is_shown_and_is_special_cased():
    rng = random.Random(0)
    for problem in sample(WORLD, 20, 0, "train"):
        completion = WORLD.document(problem, "lookup", rng)
        assert visible(problem, completion) == special_cased(problem, completion) == 1
        assert share_passed(problem, completion) == 2 / 8
        assert not WORLD.verify(problem, completion)


@needs_bubblewrap
def test_a_slip_of_a_derivation_is_carried_on():
    rng = random.Random(0)
    for problem in sample(WORLD, 50, 0, "train"):
        completion = WORLD.document(problem, "derive", rng, error=1.0)
        assert WORLD.steps(problem, completion)[0] is False
        assert completion.partition("<answer>return ")[2].startswith(
            completion.removeprefix("<think>").partition("</think>")[0].rpartition(";")[2]
        )


def test_functions_that_do_not_exist_say_so():
    """The least of x and 2, twice over, has three values, never four."""
    world = make({"world": "functions", "operations": [2, 2], "shown": 4})
    fixed = SimpleNamespace(choice=lambda _: "min", randint=lambda *_: 2)
    with pytest.raises(UserError, match=r"\[2, 2\] operations \(almost\) never have 4 different outputs"):
        world.problem(fixed)
