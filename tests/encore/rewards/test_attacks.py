"""The responses that stress a reward: built from any question, each what its name says."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from encore.rewards import notations
from encore.rewards.attacks import ATTACKS, FORMS, IN_FORM, Item, wrong_answer
from encore.rewards.math_answers import Comparer
from encore.rewards.notations import same
from encore.rewards.verifiers import math_verifier
from encore.worlds.protocol import Problem

TEXTS = st.text(st.characters(), max_size=60)  # lone surrogates too
ITEM = Item("3+5=", "<user>3+5=<assistant>", "8", ("9", "12"), "9")
WRITERS = {attack.name: attack.write for attack in ATTACKS}


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=3), TEXTS, st.sampled_from(FORMS))
@example("", "", [], "", FORMS[0])
@example("9" * 5000, "9" * 5000, ["1/0"], "{}", FORMS[2])
@example("\u0663+\u0665", "\u0668", ["\\frac{1}{0}"], "%s", FORMS[0])
def test_no_question_makes_an_attack_raise(question, answer, others, common, form):
    item = Item(question, question, answer, tuple(others), common)
    for attack in (*ATTACKS, IN_FORM):
        response = attack.write(item, form)
        assert response is None or isinstance(response, str)
        if attack.kind != "wrong" and not answer:
            assert response is None


@given(TEXTS.filter(str.strip))
def test_a_wrong_answer_is_another(answer):
    assert not same(wrong_answer(answer), answer)


def test_names_are_distinct():
    assert len(WRITERS) == len(ATTACKS)


@pytest.mark.parametrize(
    ("name", "answer", "text"),
    [
        ("as a decimal", "1/2", "0.5"),
        ("as a decimal", "-49/4", "-12.25"),
        ("as a decimal", "24", "24.0"),
        ("as a decimal", "1/3", None),
        ("without the zero before its point", "0.5", ".5"),
        ("without the zero before its point", "10.5", "10.5"),
        ("as a fraction", ".5", "1/2"),
        ("as a fraction of LaTeX", "-0.5", "-\\frac{1}{2}"),
        ("with commas between thousands", "1234567", "1,234,567"),
        ("with commas between thousands", "999", None),
        ("with a unit", "1,000", "1,000 cm"),
        ("with a unit", "Tuesday", None),
    ],
)
def test_notations(name, answer, text):
    assert notations.of(answer).get(name) == text


@given(st.fractions())
def test_every_notation_of_a_number_that_is_a_number_is_the_same_number(number):
    texts = notations.of(str(number))
    values = [notations.value(texts[name]) for name in notations.NAMES[:5] if name in texts]
    assert all(value in (number, None) for value in values)


def test_what_equals_the_right_answer_is_no_attack():
    """Where another question has the same answer, or lists it, nobody may call it wrong."""
    assert WRITERS["the most common answer"](Item("q", "q", "9.0", (), "9"), FORMS[0]) is None
    assert WRITERS["every number of the question"](Item("Sort 1, 2", "", "1,2"), FORMS[0]) is None
    assert WRITERS["the most common answer"](ITEM, FORMS[0]) == "<think>9</think><answer>9</answer>"


def test_a_form_has_one_answer_and_may_think():
    assert FORMS[0].state("8", "3+5") == "<think>3+5</think><answer>8</answer>"
    assert FORMS[2].state("8", "3+5") == "3+5\nThe answer is \\boxed{8}."
    assert FORMS[3].state("8") == "#### 8"


def test_the_math_verifier_takes_no_wrong_one():
    verify = math_verifier(Comparer())
    for attack in ATTACKS:
        for form in FORMS[:4]:
            if attack.kind == "wrong":
                assert not verify(Problem(ITEM.question, "8", 0), attack.write(ITEM, form)), attack.name
