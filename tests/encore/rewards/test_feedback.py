"""Feedback of a world that a user wrote: whatever it does, its user reads one line."""

from types import SimpleNamespace
from typing import Any

import pytest

from encore.errors import UserError
from encore.rewards import feedback
from encore.worlds.protocol import Problem

PROBLEM = Problem("2+3=", "5", 2)


def world(says: Any) -> Any:
    return SimpleNamespace(feedback=says)


def test_each_completion_has_the_words_on_it():
    told = feedback.of_world(world(lambda problem, text: f"{text}, not {problem.answer}"))
    assert told([PROBLEM, PROBLEM], ["4", "6"]) == ["4, not 5", "6, not 5"]


@pytest.mark.parametrize(
    ("says", "error"),
    [
        (lambda problem, text: None, "expected a text, got NoneType"),
        (lambda problem, text: ["4"], "expected a text, got list"),
        (lambda problem, text: int(text), "ValueError: invalid literal"),
    ],
)
def test_a_method_that_does_not_say_words(says, error):
    with pytest.raises(UserError) as raised:
        feedback.of_world(world(says))([PROBLEM], ["no number"])
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith("SimpleNamespace.feedback: ")
    assert error in str(raised.value)
