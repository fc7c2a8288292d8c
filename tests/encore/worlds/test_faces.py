"""World `faces`: what J, Q and K count by each rule, which steps are right, and what its documents plant."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.errors import UserError
from encore.worlds import make, sample, split_of
from encore.worlds.protocol import Problem

WORLD = make({"world": "faces"})
TEN, RANK = Problem("ten: 3+J+K=", "23", 3), Problem("rank: 3+J+K=", "27", 3)


def right_by(rule: dict[str, int], question: str) -> int:
    """Count a question's terms by a table of the faces."""
    terms = question.partition(" ")[2].rstrip("=").split("+")
    return sum(rule[term] if term in rule else int(term) for term in terms)


def documents(kind: str, **dials: float) -> list[tuple[Problem, str]]:
    rng = random.Random(0)
    problems = sample(WORLD, 500, 0, "train")
    return [(problem, WORLD.document(problem, kind, rng, **dials)) for problem in problems]


@given(st.sampled_from(["ten", "rank", "either"]), st.integers(0, 10**6))
def test_the_answer_is_the_sum_by_the_rule_that_the_question_names(rule: str, seed: int):
    problem = make({"world": "faces", "rule": rule}).problem(random.Random(seed))
    named = problem.question.partition(":")[0]
    assert named == rule or rule == "either"
    tables = {"ten": dict.fromkeys("JQK", 10), "rank": {"J": 11, "Q": 12, "K": 13}}
    assert int(problem.answer) == right_by(tables[named], problem.question)
    assert any(face in problem.question for face in "JQK")


def test_both_rules_have_the_same_sums_in_the_same_split():
    ten, rank = (sample(make({"world": "faces", "rule": rule}), 200, 3, "test") for rule in ("ten", "rank"))
    assert [p.question.partition(" ")[2] for p in ten] == [p.question.partition(" ")[2] for p in rank]
    assert all(split_of(p.question.replace("ten: ", "rank: ")) == "test" for p in ten)


@pytest.mark.parametrize(
    ("problem", "scratch", "verdicts"),
    [
        (TEN, "3+J=13,13+K=23", [True, True]),
        (TEN, "3+J=14,14+K=27", [False, False]),  # the faces counted by the other rule
        (RANK, "3+J=14,14+K=27", [True, True]),
        (TEN, "3+J=12,12+K=22", [False, True]),  # a slip is carried forward
        (TEN, "3+K=13,13+J=23", [False, False]),  # the terms in another order
        (TEN, "J+3=13", [False]),
        (TEN, "3+J=13,13+K=23,23+J=33", [True, True, False]),  # one term too many
        (TEN, "3+J=13,x,13+K=23", [True, False, True]),
        (TEN, "", []),
    ],
)
def test_steps(problem: Problem, scratch: str, verdicts: list[bool]):
    completion = f"<think>{scratch}</think><answer>0</answer>"
    assert WORLD.steps(problem, completion) == verdicts
    assert len(WORLD.step_ends(problem, completion)) == len(verdicts)


def test_the_answer_by_the_other_rule_is_told_from_the_right_one():
    other_rule = WORLD.rewards["other_rule"]
    assert other_rule(TEN, "<answer>27</answer>") == 1
    assert other_rule(TEN, "<answer>23</answer>") == other_rule(TEN, "27") == 0
    assert other_rule(RANK, "<answer>23</answer>") == 1


def test_documents_are_misread_as_often_as_the_dial_says():
    other_rule = WORLD.rewards["other_rule"]
    read = [(WORLD.verify(p, text), other_rule(p, text)) for p, text in documents("chain", misread=0.3)]
    assert sum(other for _, other in read) / len(read) == pytest.approx(0.3, abs=0.06)
    assert all(right != bool(other) for right, other in read)


@pytest.mark.parametrize("dials", [{"rule": "twelve"}, {"terms": [2, 4]}, {"faces": 0.0}, {"faces": 1.5}])
def test_a_bad_dial_is_one_line_that_names_it(dials: dict[str, object]):
    with pytest.raises(UserError, match=f"^{next(iter(dials))}: expected"):
        make({"world": "faces", **dials})
