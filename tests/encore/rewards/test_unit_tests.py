"""Programs against the tests of MBPP and HumanEval."""

import shutil

import datasets
import pytest
import typed
from code_datasets import DATASETS, HUMANEVAL, MBPP
from data_set_files import write
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.data import hub
from encore.errors import UserError
from encore.rewards import rules, verifiers
from encore.rewards.unit_tests import UnitTest, feedback, program, read_tests, verdicts
from encore.worlds import Problem

needs_bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
ASKED = "Write a function to double a number. It must pass: assert double(2) == 4"
DOUBLE = Problem(ASKED, str(MBPP["test_list"]), 0)
HALVE = Problem(HUMANEVAL["prompt"], f"{HUMANEVAL['test']}\ncheck(halve)", 0)
NAMES = ("accuracy", "share_passed", "visible", "special_cased")


def rewarded(problem, *completions):
    """(completions,) of (accuracy, share_passed, visible, special_cased)."""
    columns = {key: [getattr(problem, key)] * len(completions) for key in ("question", "answer")}
    built = rules.build(NAMES, None, verifies="tests")
    values = [one(prompts=[""] * len(completions), completions=[*completions], **columns) for one in built]
    return [*zip(*values, strict=True)]


@pytest.mark.parametrize(
    ("test", "call", "expected", "absolute", "relative"),
    [
        ("assert f(2) == 4", "f(2)", "4", 0, 0),
        ("assert 4 == f(2), 'four'", "f(2)", "4", 0, 0),
        ("assert f(2) is None", "f(2)", "None", 0, 0),
        ("assert set(f([1])) == set([1, 2])", "set(f([1]))", "set([1, 2])", 0, 0),
        ("assert f(2)", "bool(f(2))", "True", 0, 0),
        ("assert not f(2)", "bool(f(2))", "False", 0, 0),
        ("assert abs(f(2) - 1.5) < 1e-6", "f(2)", "1.5", 1e-6, 0),
        ("assert math.isclose(f(2), 1.5, rel_tol=0.01)", "f(2)", "1.5", 0, 0.01),
    ],
)
def test_an_assert_is_read(test, call, expected, absolute, relative):
    (found,) = read_tests(str([test])).tests
    assert (found.call, found.expected, found.absolute, found.relative) == (
        call,
        expected,
        absolute,
        relative,
    )


@pytest.mark.parametrize(
    "answer",
    [
        "", "7", "[]", "[1]", "assert", "assert f(2) != 4", "assert 1 < f(2) < 3", "assert f(2) == f(3)",
        "assert 1 == 1", "assert f(2) == g(2)\nassert f(2) == 1 if x else 2\nassert 4 in f(2)",
        "for x in [1]:\n assert f(x) == x", "assert f(1) == 1\nfor x in [1]:\n assert f(x) == x",
        "def check(candidate):\n for x in [1]:\n  assert candidate(x) == x\ncheck(f)",
        "check(f)", "assert f(2) == 4\nf = g", "(" * 5000, "\0", "def check():\n assert f(1) == 1\ncheck(f)",
        "def check(*c):\n assert f(1) == 1\ncheck(f)", "assert abs(x=f(1) - 1) < 0.1", "assert f(1) is g",
        "assert abs(f(1) - 1) < 1" + "0" * 400,
    ],
)  # fmt: skip
def test_what_is_no_such_assert_leaves_no_tests(answer):
    assert read_tests(answer).tests == ()


def test_checks_of_humaneval_name_the_function():
    found = read_tests(HALVE.answer)
    assert found.name == "halve"
    assert found.tests[1] == UnitTest(
        "halve([0.1, 0.2])", "0.15", 1e-06, 0.0, "assert abs(halve([0.1, 0.2]) - 0.15) < 1e-06"
    )
    assert [test.expected for test in found.tests] == ["0.5", "0.15", "0"]


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("```python\ndef f(): 1\n```", "def f(): 1\n"),
        ("First ```py\na\n``` then\n```\ndef f(): 2\n``` done", "def f(): 2\n"),
        ("<think>```\ndef f(): 1\n```</think>def f(): 3", "def f(): 3"),
        ("    return 1", "def f():\n    '''One.'''\n    return 1"),
        ("def f():\n    return 1", "def f():\n    return 1"),
    ],
)
def test_the_program_of_a_completion(completion, expected):
    assert program("def f():\n    '''One.'''\n", completion, "f") == expected


@needs_bubblewrap
def test_rewards_of_programs():
    right, table = "```python\ndef double(x):\n    return x + x\n```", "def double(x): return {2: 4}[x]"
    wrong, forged = "def double(x): return 1", "print('passed')\nimport os\nos._exit(0)"
    assert rewarded(DOUBLE, right, table, wrong, forged, "\ud800") == [
        (1, 1, 1, 0),
        (0, 1 / 3, 1, 1),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
    ]


@needs_bubblewrap
def test_a_body_goes_on_from_the_question_of_humaneval():
    body, whole = HUMANEVAL["canonical_solution"], HUMANEVAL["prompt"] + "    return sum(xs) * 0.5"
    assert [one[0] for one in rewarded(HALVE, body, whole, "    return 0.5")] == [1, 1, 0]
    assert verifiers.verifier("tests")(HALVE, body)


@needs_bubblewrap
@pytest.mark.parametrize(
    ("test", "right", "wrong"),
    [
        ("assert f(1) is True", "True", "1"),
        ("assert f(1) is False", "False", "0"),
        ("assert f(1) is None", "None", "0"),
        ("assert f(1) is 4", "4", "4.0"),
        ("assert f(1) == True", "1", "2"),
        ("assert f(1) == 1" + "0" * 400, "10**400", "10**401"),  # more than a float can hold
        ("assert math.isclose(f(1), 1" + "0" * 400 + ")", "10**400", "10**401"),
    ],
)
def test_a_value_is_right_as_its_test_has_it(test, right, wrong):
    programs = [f"def f(x): return {value}" for value in (right, wrong)]
    assert [row[0] for row in rewarded(Problem("", test, 0), *programs)] == [1, 0]


@pytest.mark.slow
@needs_bubblewrap
def test_programs_that_had_no_more_time_are_counted():
    metrics = {}
    accuracy, _ = rules.build(["accuracy", "visible"], None, verifies="tests")
    programs = ["def f(x): return 4", "def f(x):\n while True: pass"]
    columns = {"question": ["", ""], "answer": ["assert f(2) == 4"] * 2}
    values = accuracy(prompts=["", ""], completions=programs, log_metric=metrics.__setitem__, **columns)
    assert values == [1.0, 0.0]
    assert metrics == {"rewards/accuracy/unfinished": 1.0}


@needs_bubblewrap
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 2 * x", ""),
        ("return x", "assert double(2) == 4: 2"),
        ("return 4", "assert double(-3) == -6: 4"),
        ("return {}[x]", "assert double(2) == 4: KeyError"),
        ("return [0] * 1000", "assert double(2) == 4: [0, 0, 0, 0, 0, 0, ...]"),
        ("return double", "assert double(2) == 4: TypeError"),
    ],
)
def test_feedback_says_what_the_first_failing_test_gave(body, words):
    assert feedback([DOUBLE], [f"def double(x):\n {body}"]) == [words]


@needs_bubblewrap
def test_without_tests_there_is_no_feedback():
    assert feedback([Problem("", "for x in []: assert f(x)", 0)], ["def f(x): return 1"]) == [""]


@needs_bubblewrap
def test_without_tests_nothing_passes():
    assert rewarded(Problem("", "for x in []: assert f(x)", 0), "def f(x): return 1") == [(0, 0, 0, 0)]


@needs_bubblewrap
@given(answer=st.text(), completion=st.text())
@settings(max_examples=30, deadline=None)
def test_no_text_raises(answer, completion):
    problems, completions = [Problem("", answer, 0), DOUBLE], [completion, completion]
    verdicts(problems, completions)
    assert all(len(words) < 1000 for words in feedback(problems, completions))


def test_the_rewards_of_programs_need_their_verifier():
    with pytest.raises(UserError, match=r"rewards.visible: unknown reward"):
        rules.check_reward_names(["visible"], None)
    rules.check_reward_names(NAMES, None, "tests")


@needs_bubblewrap
@pytest.mark.parametrize(
    ("name", "split", "keys", "right"),
    [
        (
            "google-research-datasets/mbpp",
            "train",
            {"subset": "full", "question": "text", "answer": "test_list"},
            MBPP["code"],
        ),
        (
            "openai/openai_humaneval",
            "test",
            {"subset": "openai_humaneval", "question": "prompt", "answer": "{test}\ncheck({entry_point})"},
            HUMANEVAL["canonical_solution"],
        ),
    ],
)
def test_data_sets_of_programs(name, split, keys, right, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    place = {"hub": str(write(name, DATASETS[name], tmp_path)), "revision": "0" * 40, "split": split}
    (question, answer, _), _ = hub.problems(typed.task(place | keys | {"verifier": "tests"}))
    assert rewarded(Problem(question, answer, 0), right)[0][:2] == (1, 1)
