"""Feedback: what a verifier says in words of a completion that is wrong, such as the tests that it fails."""

from collections.abc import Callable, Sequence
from typing import Any

from encore.recipe.task import Task
from encore.rewards import unit_tests
from encore.worlds.feedback import feedback_of
from encore.worlds.protocol import Problem, TellingWorld

# takes problems and a completion of each; returns the words on each completion, "" if there are none
Feedback = Callable[[Sequence[Problem], Sequence[str]], list[str]]


def of_task(task: Task) -> Feedback:
    """Return the feedback of a task that gives some: the world's, or the tests of a data set that fail."""
    world: Any = task.make_world()
    return unit_tests.feedback if world is None else of_world(world)


def of_world(world: TellingWorld) -> Feedback:
    """Return the feedback of a world, by its method `feedback`; see encore.worlds.feedback."""
    words = feedback_of(world)
    return lambda problems, completions: [*map(words, problems, completions)]
