"""The protocol of a world: problems, an exact verifier, a step verifier and documents to pretrain on."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from encore.errors import UserError


@dataclass(frozen=True)
class Problem:
    """A problem with its right answer: a completion that ends in `<answer>{answer}</answer>` verifies.

    `begun`: the beginning of the completion, if the problem prescribes it, as in few worlds. `number`: the
    number by which the world finds the problem again; 0 if question and answer define the problem.
    """

    question: str
    answer: str
    difficulty: int
    begun: str = ""
    number: int = 0


Document = Callable[..., str]  # (world, problem, rng, *, dial=default, ...) -> completion


class World(Protocol):
    """A seeded generator of problems with verifiers; its fields are the dials of a recipe's `task`."""

    name: str
    vocabulary: tuple[str, ...]  # all tokens that the world's text can contain, whatever its dials
    # the kinds of document that a corpus may mix; their keyword arguments are dials
    kinds: Mapping[str, Document]
    # rewards of the world itself, such as partial credit
    rewards: Mapping[str, Callable[[Problem, str], float]]

    def problem(self, rng: random.Random) -> Problem: ...

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the completion's answer is right. It never raises, and takes linear time."""
        ...

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step in the scratchpad is right. It never raises, and takes linear time."""
        ...

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        """Return the character offset just past each step, in the order of `steps`. It takes linear time."""
        ...

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str: ...


@runtime_checkable
class TellingWorld(World, Protocol):
    """A world that says in words why a completion is wrong."""

    def feedback(self, problem: Problem, completion: str) -> str:
        """Return words on what is wrong with the completion; "" if it is right."""
        ...


def require(ok: bool, message: str) -> None:
    """Raise a UserError with `message` unless `ok`."""
    if not ok:
        raise UserError(message)
