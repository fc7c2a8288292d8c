"""Prompts of a corpus that tell what is wrong with another attempt at the problem."""

import pytest

from encore.errors import UserError
from encore.worlds import Problem, corpus, functions, make

TEMPLATE = "<user>{question}<assistant>"
TOLD = "<user>{question} {feedback}<assistant>"


def test_a_prompt_may_tell_what_is_wrong_with_another_attempt():
    """The rest of the documents is as without, and the words are of wrong programs at the same question."""
    world = make({"world": "functions"})
    attempts = {"lookup": 1, "direct": {"weight": 1, "right": 0.9}}
    told, again = (corpus(world, {"derive": 1}, 30, 3, TOLD, attempts=attempts) for _ in range(2))
    plain = corpus(world, {"derive": 1}, 30, 3, TEMPLATE)
    assert told == again
    for (prompt, response), (bare, same) in zip(told, plain, strict=True):
        question = bare.removeprefix("<user>").removesuffix("<assistant>")
        words = prompt.removeprefix(f"<user>{question} ").removesuffix("<assistant>")
        problem = Problem(question, "", 0)
        assert response == same
        tests = {int(x): int(y) for x, y in (test.split(":") for test in words.split())}
        every = {**functions.given(problem)[1], **functions.unseen(problem)}
        assert tests
        assert tests.items() <= every.items()


def test_attempts_that_are_never_wrong_are_named():
    world = make({"world": "functions"})
    with pytest.raises(UserError, match=r"^attempts: 50 of them at .* are all right; mix in wrong kinds"):
        corpus(world, {"derive": 1}, 1, 0, TOLD, attempts={"direct": {"weight": 1, "right": 1.0}})
    with pytest.raises(UserError, match=r'^attempts.drect: world "functions" has no kind "drect"'):
        corpus(world, {"derive": 1}, 1, 0, TOLD, attempts={"drect": 1})


def test_a_users_feedback_that_fails_in_a_corpus_is_one_line(monkeypatch):
    def feedback(world, problem, completion):
        raise RuntimeError("no words")

    world = make({"world": "functions"})
    monkeypatch.setattr(type(world), "feedback", feedback)
    with pytest.raises(UserError, match=r"^Functions.feedback.*no words"):
        corpus(world, {"derive": 1}, 1, 0, TOLD, attempts={"lookup": 1})
