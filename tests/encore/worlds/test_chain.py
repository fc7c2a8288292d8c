"""World chain: its dials, its step verifier and what its documents plant."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.errors import UserError
from encore.worlds import Problem, corpus, make, sample
from encore.worlds.chain import Chain
from encore.worlds.sums import operands_of

PROBLEM = Problem("3+5+7=", "15", 3)
worlds = st.builds(
    lambda low, more, digits, operators: Chain((low, low + more), digits, operators),
    st.integers(2, 12),
    st.integers(0, 4),
    st.integers(1, 3),
    st.sampled_from(["+", "+-"]),
)

RIGHT = ["chain", "filler", "recheck", "repaired", "pairwise", "grouped"]


@given(worlds, st.integers(0, 10**6))
def test_the_answer_is_the_value_of_the_question(world, seed):
    problem = world.problem(random.Random(seed))
    assert problem.answer == str(eval(problem.question.rstrip("=")))
    assert "-0" not in problem.question
    assert len(operands_of(problem.question)) == problem.difficulty
    assert world.terms[0] <= problem.difficulty <= world.terms[1]


@given(worlds, st.integers(0, 10**6), st.sampled_from(RIGHT))
def test_a_right_document_is_right_step_by_step(world, seed, kind):
    rng = random.Random(seed)
    problem = world.problem(rng)
    completion = world.document(problem, kind, rng)
    assert world.verify(problem, completion)
    assert all(world.steps(problem, completion))


@given(worlds, st.integers(0, 10**6), st.sampled_from(RIGHT))
def test_where_the_working_counts_a_right_document_is_right(world, seed, kind):
    rng = random.Random(seed)
    problem = world.problem(rng)
    assert replace(world, worked=True).verify(problem, world.document(problem, kind, rng))


def test_a_step_that_stood_twice_may_be_written_again():
    """The sum 8+0 is added twice, for there are two zeros; going over the last one leaves neither of them."""
    world = Chain(worked=True)
    problem = Problem("8+0+0=", "8", 3)
    once, twice = "8+0=8,8+0=8", "8+0=8,8+0=8wait8+0=8,8+0=8"
    for working in (once, f"{once}wait8+0=8", twice):
        assert world.verify(problem, f"<think>{working}</think><answer>8</answer>")


@given(worlds, st.integers(0, 10**6))
def test_where_the_working_counts_a_right_guess_is_wrong(world, seed):
    problem = world.problem(random.Random(seed))
    guess = f"<answer>{problem.answer}</answer>"
    assert world.verify(problem, guess)
    assert not replace(world, worked=True).verify(problem, guess)


@pytest.mark.parametrize(
    ("working", "right"),
    [
        ("1+2=3,3+3=6,6+4=10", True),
        ("1+2=3,3+4=7,3+7=10", True),  # in any order
        ("1+2+3=6,6+4=10", True),  # three at once
        ("1+2=4wait1+2=3,3+3=6,6+4=10", True),  # a slip that is repaired
        ("1+2+3+4=10", False),  # all at once: a guess
        ("1+2=3", False),  # stops early, then guesses
        ("1+2=4,4+3=6,6+4=10", False),  # two slips that cancel
        ("1+2=3,3+3=6,6+4=11", False),
        ("1+2=3,3+9=12", False),  # a number that is not there
        ("", False),
    ],
)
def test_the_working_must_lead_to_the_answer(working, right):
    problem = Problem("1+2+3+4=", "10", 4)
    completion = f"<think>{working}</think><answer>10</answer>"
    assert Chain((4, 4), worked=True).verify(problem, completion) is right
    assert Chain((4, 4)).verify(problem, completion)


@given(worlds, st.integers(0, 10**6))
def test_an_error_is_one_step_and_makes_the_answer_wrong(world, seed):
    rng = random.Random(seed)
    problem = world.problem(rng)
    completion = world.document(problem, "chain_error", rng)
    assert world.steps(problem, completion).count(False) == 1
    assert len(world.steps(problem, completion)) == problem.difficulty - 1
    assert not world.verify(problem, completion)


@given(worlds, st.integers(0, 10**6))
def test_a_recheck_repairs_a_wrong_last_step(world, seed):
    rng = random.Random(seed)
    problem = world.problem(rng)
    completion = world.document(problem, "recheck", rng, error=1.0)
    steps = world.steps(problem, completion)
    assert steps.count(False) == 1
    assert not steps[problem.difficulty - 2]
    assert world.verify(problem, completion)


@pytest.mark.parametrize(
    ("scratch", "expected"),
    [
        ("3+5=8,8+7=15", [True, True]),
        ("5+7=12,12+3=15", [True, True]),  # another order
        ("3+5+7=15", [True]),
        ("3+5=9,9+7=16", [False, True]),  # carried forward
        ("3+5=8,9+7=16", [True, False]),  # a number from nowhere
        ("3+5=8,9+7=16,16+7=23", [True, False, False]),  # the 7 is used up
        ("3+5=8,8+5=13", [True, False]),
        ("3+5=8wait3+5=8,8+7=15", [True, True, True]),
        ("3+5=9,9+7=16wait3+5=8,8+7=15", [False, True, True, True]),
        ("3+5=8,8+7=16wait8+7=15", [True, False, True]),
        ("3+5=8..,...8+7=15.", [True, True]),
        (",,3+5=8,", [True]),
        ("3+5", [False]),
        ("=8", [False]),
        ("8=3+5", [False]),
        ("3*5=15", [False]),
        ("3+5=8=8", [False]),
        ("3+5=\uff18", [False]),
        ("3+5=" + "8" * 300, [False]),
        ("", []),
    ],
)
def test_steps(scratch, expected):
    assert Chain().steps(PROBLEM, f"<think>{scratch}</think><answer>15</answer>") == expected
    assert Chain().steps(PROBLEM, scratch) == expected


def test_subtraction_and_negative_results_are_steps_too():
    world = make({"world": "chain", "operators": "+-"})
    problem = Problem("3-5+7-9=", "-4", 4)
    assert world.steps(problem, "3-5=-2,-2+7=5,5-9=-4") == [True] * 3
    assert world.steps(problem, "3-5=-2,7-9=-2,-2-2=-4") == [True] * 3
    assert world.steps(problem, "3+5=8") == [False]
    assert world.verify(problem, "<answer>-4</answer>")


@pytest.mark.parametrize(
    "wrong", ["015", "+15", "15.0", "1 5", "\uff11\uff15", "15=", "\\boxed{15}", "", "-15", "14"]
)
def test_only_the_number_as_one_writes_it_is_right(wrong):
    assert not Chain().verify(PROBLEM, f"<think>3+5=8,8+7=15</think><answer>{wrong}</answer>")


def test_weights_make_difficulty_unequal():
    world = make({"world": "chain", "terms": [3, 5], "weights": [0, 1, 3]})
    count = Counter(problem.difficulty for problem in sample(world, 2000, 0, "train"))
    assert count.keys() == {4, 5}
    assert count[5] / 2000 == pytest.approx(0.75, abs=0.04)


def test_error_filler_and_grouping_have_the_planted_size():
    world, rng = Chain(terms=(8, 8)), random.Random(0)
    problems = [world.problem(rng) for _ in range(500)]

    def written(kind, **dials):
        return [(problem, world.document(problem, kind, rng, **dials)) for problem in problems]

    wrong = [not ok for p, text in written("chain", error=0.1) for ok in world.steps(p, text)]
    assert sum(wrong) / len(wrong) == pytest.approx(0.1, abs=0.02)
    dots = [text.count(".") / 7 for _, text in written("filler", mean=3.0)]
    assert sum(dots) / len(dots) == pytest.approx(3, abs=0.3)
    assert all("." not in text for _, text in written("filler", mean=0.0))
    assert {len(world.steps(p, text)) for p, text in written("grouped")} == {4}
    assert {len(world.steps(p, text)) for p, text in written("pairwise")} == {7}
    kept = {len(world.steps(p, text)) for p, text in written("truncated")}
    assert kept == {1, 2, 3, 4, 5, 6}


# -- slips that problems come with ---------------------------------------------------------------------------

SLIPPED = Chain((3, 6), slipped=0.5)


def test_half_of_the_problems_come_with_a_wrong_first_step():
    problems = sample(SLIPPED, 400, 0, "train")
    begun = [problem for problem in problems if problem.begun]
    assert len(begun) == pytest.approx(200, abs=40)
    for problem in begun:
        first, second, *_ = operands_of(problem.question)
        assert problem.begun.startswith(f"<think>{first}+{second}=")
        assert problem.begun.endswith(",")
        assert SLIPPED.steps(problem, problem.begun) == [False]
    assert sample(Chain((3, 6), slipped=0.0), 400, 0, "train") == sample(Chain((3, 6)), 400, 0, "train")


@pytest.mark.parametrize(("kind", "right"), [("filler", False), ("repaired", True)])
def test_documents_carry_it_forward_or_repair_it(kind, right):
    for seed, problem in enumerate(sample(SLIPPED, 200, 0, "train")):
        whole = SLIPPED.document(problem, kind, random.Random(seed), mean=1.0)
        assert whole.startswith(problem.begun)
        assert SLIPPED.verify(problem, whole) == (right or not problem.begun)
        assert SLIPPED.rewards["unrepaired"](problem, whole) == (not right and bool(problem.begun))


def test_a_corpus_goes_on_from_it():
    kinds = {"filler": 3, "repaired": {"weight": 1, "error": 0.1}}
    pairs = corpus(SLIPPED, kinds, 2000, 0, "{question}<assistant>")
    begun = [text for prompt, text in pairs if prompt.endswith(",")]
    assert len(begun) == pytest.approx(1000, abs=100)
    assert sum(text.startswith("wait") for text in begun) / len(begun) == pytest.approx(0.25, abs=0.05)
    assert all(text.startswith("<think>") for prompt, text in pairs if not prompt.endswith(","))
    with pytest.raises(UserError, match=r"mixture\.direct: its documents cannot continue a beginning"):
        corpus(SLIPPED, {"direct": 1}, 50, 0, "{question}")


@pytest.mark.parametrize(
    ("working", "found"),
    [
        ("3+5=9,9+7=16", 1),  # carried forward
        ("3+5=9..,wait3+5=8,8+7=15", 0),  # repaired
        ("3+5=9,9+7=16wait3+5=8,8+7=15", 0),  # later
        ("3+5=9,wait3+5=9,9+7=16", 1),  # again wrong
        ("0+1=0,0+1=1,1+1=2", 1),  # the next term, not a repair
        ("3+5=8,8+7=16", 0),  # nothing follows the slip but the answer
        ("3+5=8,8+7=15", 0),
        ("", 0),
        (",wait,=", 0),
    ],
)
def test_what_shows_that_an_answer_will_be_wrong(working, found):
    reward = Chain.rewards["unrepaired"]
    assert reward(PROBLEM, f"<think>{working}</think><answer>15</answer>") == found


@given(st.text(alphabet="0123456789+-=,.wait<think>/"))
def test_no_text_makes_it_raise(text):
    assert Chain.rewards["unrepaired"](PROBLEM, text) in (0.0, 1.0)
