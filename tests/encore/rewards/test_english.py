"""Reward english: which words it counts, what it does not read, and that nothing can make it fail."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.rewards.english import english
from encore.rewards.rules import build
from encore.worlds import Problem

PROBLEM = Problem("Find x.", "3", 0)


@pytest.mark.parametrize(
    ("reasoning", "share"),
    [
        ("First, add. Then it's done.", 1.0),
        ("First 首先 add", 2 / 4),
        ("首先、我们", 0.0),
        ("naïve Weiß", 1.0),  # a script is all that it tells apart
        ("Сначала add", 1 / 8),
        (r"\frac{3}{4} + \alpha_1 = 7", 0.0),
        (r"so \frac{3}{4} 是 x", 2 / 3),
        ("3+4=7", 0.0),
        ("", 0.0),
        ("...!?", 0.0),
    ],
)
def test_the_share_of_words_in_latin_letters(reasoning, share):
    assert english(PROBLEM, f"<think>{reasoning}</think>答案 3") == pytest.approx(share)


def test_the_answer_does_not_count_and_hub_datasets_have_the_reward():
    (reward,) = build(["english"], None)
    texts = ["<think>so it is</think>三", "<think>三</think>so it is", "so 三", "<think>so"]
    assert reward(["p"] * 4, texts, question=["q"] * 4, answer=["3"] * 4) == [1.0, 0.0, 0.5, 1.0]
    assert reward.__name__ == "english"


@given(st.text(st.characters(exclude_categories=())))  # lone surrogates included
def test_no_completion_makes_it_raise(completion):
    assert 0 <= english(PROBLEM, completion) <= 1


@pytest.mark.parametrize("unit", ["a", "三", "\\a", "a三", "<think>", "\\"])
def test_long_completions_take_linear_time(unit):
    start = time.process_time()
    english(PROBLEM, unit * 100_000)
    assert time.process_time() - start < 2
