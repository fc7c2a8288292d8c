"""Feedback: what a verifier says in words of a completion that is wrong, such as the tests that it fails."""

from collections.abc import Callable, Sequence
from typing import Any

from encore import own_code
from encore.errors import UserError
from encore.recipe.task import Task
from encore.rewards import unit_tests
from encore.worlds.protocol import Problem

# takes problems and a completion of each; returns the words on each completion, "" if there are none
Feedback = Callable[[Sequence[Problem], Sequence[str]], list[str]]


def of_task(task: Task) -> Feedback:
    """Return the feedback of a task that gives some: the world's, or the tests of a data set that fail."""
    world: Any = task.make_world()
    return unit_tests.feedback if world is None else of_world(world)


def of_world(world: Any) -> Feedback:
    """Return the feedback of a world's method `feedback`, which may be a user's.

    The returned function raises UserError if the method fails, takes more than a minute or returns no text.
    """
    name = f"{type(world).__name__}.feedback"
    method = own_code.bounded(name, world.feedback)

    def words(problem: Problem, completion: str) -> str:
        text = method(problem, completion)
        if not isinstance(text, str):
            raise UserError(f"{name}: expected a text, got {type(text).__name__}")
        return text

    return lambda problems, completions: [*map(words, problems, completions)]
