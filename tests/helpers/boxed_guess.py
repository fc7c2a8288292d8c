"""A taskset of verifiers whose tasks need a container."""

import fruit_guess
import verifiers.v1 as vf

__all__ = ["Boxed"]


class Task(fruit_guess.Guess):
    NEEDS_CONTAINER = True


class Boxed(vf.Taskset[Task, fruit_guess.Config]):
    def load(self):
        yield Task(fruit_guess.Fruit(prompt="Which?", word="apple"), self.config.task)
