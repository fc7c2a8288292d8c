"""Language consistency and readability: each part by examples; no text makes them raise or leave [0, 1]."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from encore.worlds import Problem
from encore.worlds.bilingual import Bilingual
from encore.worlds.readability import asked, language_consistency, readability, stated

ENGLISH, SPANISH = Problem("English: 3+5+7=", "15", 3), Problem("Spanish: 3+5+7=", "15", 3)
TIDY = "three plus five is eight , eight plus seven is one five "
anything = st.text(st.characters(exclude_categories=()))  # lone surrogates included
words = st.one_of(st.sampled_from(Bilingual.vocabulary), anything)
tokens = st.lists(words, max_size=60).map("".join)


def within(scratch):
    return f"<think>{scratch}</think><answer>15</answer>"


@pytest.mark.parametrize(
    ("scratch", "share"),
    [
        (TIDY, 1),
        ("three mas five es ", 1 / 2),
        ("tres mas ", 0),
        ("three plus 5", 2 / 3),  # a digit is a word of neither language
        ("three 3+5", 1 / 4),
        ("three drei ", 1 / 2),  # nor is any other word
        ("threefive plus ", 1 / 2),
        ("three , ... , ,", 1),  # commas and dots are no words
        ("3+5=8, 8+7=15", 0),
        ("...", 0),
        ("", 0),
    ],
)
def test_language_consistency_is_the_share_of_words_in_the_language_asked_for(scratch, share):
    assert language_consistency(ENGLISH, within(scratch)) == pytest.approx(share)
    assert language_consistency(ENGLISH, scratch) == pytest.approx(share)  # without its tags


def test_it_is_of_the_language_asked_for_and_of_the_scratchpad_alone():
    assert language_consistency(SPANISH, within(TIDY)) == 0
    assert language_consistency(ENGLISH, within("uno ") + "one two three ") == 0
    assert language_consistency(ENGLISH, "<think>one <think>uno </think>") == 1 / 2
    assert language_consistency(ENGLISH, "<think>one </think><answer>La suma es 15</answer>") == 1
    assert [asked(ENGLISH), asked(SPANISH), asked(Problem("3+5=", "8", 2))] == [
        "english",
        "spanish",
        "english",
    ]


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (within(TIDY), 1),
        (within("tres mas cinco es ocho , ocho mas siete es uno cinco "), 1),  # asked for or not
        (within("three plus five is nine , nine plus seven is one six "), 1),  # right or wrong
        (f"<think>{TIDY}</think><answer>The sum is 15</answer>", 1),
        (within("three plus five is ocho , ocho plus seven is one cinco "), 8 / 11),
        (within("three plus five is eight .., eight plus seven is one five "), 1 / 2),
        (within("three plus five is eight , hm"), 1 / 2 * 5 / 6),
        (within("three plus five is eight eight plus seven is one five "), 0),
        (within(TIDY + ", eight plus seven is one five "), 2 / 3),
        (within("three plus five is eight , three plus five is eight "), 1),  # no more than the sum takes
        (within("3+5=8, 8+7=15"), 0),
        (within(""), 0),
        (TIDY, 0),
        (f"<think>{TIDY}</think>", 0),
        (f"{TIDY}<answer>15</answer>", 0),
        (f"<think>{TIDY}</think><answer>one five </answer>", 0),
        (f"<think>{TIDY}</think><answer></answer>", 0),
    ],
)
def test_readability_is_a_product_of_what_makes_a_completion_readable(completion, expected):
    assert readability(ENGLISH, completion) == pytest.approx(expected)


def test_a_sum_that_takes_the_same_step_twice_does_not_repeat_itself():
    step = "three plus zero is three "
    assert readability(Problem("English: 3+0+0=", "3", 3), within(f"{step}, {step}")) == 1
    assert readability(Problem("English: 3+0=", "3", 2), within(f"{step}, {step}")) == 1 / 2


@given(st.one_of(anything, tokens, tokens.map(within)), anything)
@example("\ud800", "\ud800")
@example("<think>٣ plus ٣ is ٦ </think><answer>٦</answer>", "English: ")
@example("<think>one </think><answer>" + "9" * 5000 + "</answer>", "English: ")
def test_no_text_raises_or_leaves_the_unit_interval(completion, question):
    for problem in (ENGLISH, SPANISH, Problem(question, "15", 3)):
        for measure in (language_consistency, readability):
            value = measure(problem, completion)
            assert isinstance(value, float)
            assert 0 <= value <= 1
    shares = language_consistency(ENGLISH, completion) + language_consistency(SPANISH, completion)
    assert shares <= 1 + 1e-9
    assert stated(completion) is None or isinstance(stated(completion), str)


@pytest.mark.parametrize(
    "unit", ["three plus five is eight , ", "one ", "one", ",", ", ", ".", "<think>", " "]
)
def test_a_long_text_is_read_in_linear_time(unit):
    text = within(unit * (400_000 // len(unit)))
    start = time.process_time()
    language_consistency(ENGLISH, text)
    readability(ENGLISH, text)
    assert time.process_time() - start < 2
