"""The tags: what counts as the answer, what as the format, and that no text can raise or stall."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.worlds.answers import TAGS, answer, formatted, scratchpad

pieces = st.lists(st.sampled_from([*TAGS, "8", " ", "\n", "3+5=8,", "\ud800", "é", "<answer"]), max_size=12)


@pytest.mark.parametrize(
    ("completion", "expected", "form"),
    [
        ("<think>3+5=8</think><answer>8</answer>", "8", True),
        ("<think></think><answer></answer>", "", True),
        (" <think>a</think>\n<answer>8</answer>\n", "8", True),
        ("<answer>\n 8 </answer>", "8", False),
        ("3+5=8<answer>8</answer>", "8", False),
        ("<think>3+5=8<answer>8</answer>", "8", False),
        ("<think>a</think><answer>8</answer>8", "8", False),
        ("<think>a</think>b<answer>8</answer>", "8", False),
        ("<think>a</think><think>b</think><answer>8</answer>", "8", False),
        ("<answer>8</answer><think>a</think>", None, False),
        ("<answer>8</answer><answer>9</answer>", None, False),
        ("<answer><answer>8</answer>", None, False),
        ("<answer><answer>8</answer></answer>", None, False),
        ("<answer><think>8</think></answer>", None, False),
        ("<think><answer>8</answer></think>", None, False),
        ("</answer><answer>8</answer>", None, False),
        ("<answer>8", None, False),
        ("8</answer>", None, False),
        ("", None, False),
    ],
)
def test_answer_and_format(completion, expected, form):
    assert answer(completion) == expected
    assert formatted(completion) is form


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("<think>a</think><answer>8</answer>", "a"),
        ("<think>a", "a"),
        ("<think>a<answer>8</answer>", "a"),
        ("a<answer>8</answer>", "a"),
        ("a", "a"),
        ("<answer>8</answer>", ""),
    ],
)
def test_scratchpad(completion, expected):
    assert scratchpad(completion) == expected


@given(pieces)
def test_any_text_is_read_and_a_formatted_one_has_an_answer(parts):
    text = "".join(parts)
    found = answer(text)
    assert found is None or not any(tag in found for tag in TAGS)
    assert not formatted(text) or found is not None
    scratchpad(text)


@pytest.mark.parametrize("unit", [*TAGS, "<answer>8</answer>", "<", "<answer", " ", "8", "\ud800"])
def test_a_megabyte_takes_no_time(unit):
    text = unit * (1_000_000 // len(unit))
    start = time.perf_counter()
    for wrapped in (text, f"<think>{text}</think><answer>8</answer>", f"<answer>{text}</answer>"):
        answer(wrapped)
        formatted(wrapped)
        scratchpad(wrapped)
    assert time.perf_counter() - start < 1
