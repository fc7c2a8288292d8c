"""World `sort`: put a few distinct small numbers in ascending order (the toy of Stanford CS336, lecture 17).

The question `5,3,9=` has the answer `3,5,9`; its difficulty is the count of numbers. The kinds of document:

| kind            | example                                                  | what it plants             |
|-----------------|----------------------------------------------------------|----------------------------|
| direct          | `<answer>3,9,5</answer>`                                 | guesses: `right` are right |
| guess           | `<answer>7,0,7</answer>`                                 | the form and nothing else  |
| selection       | `<think>5,3,9:3;5,9:5;9:9</think><answer>3,5,9</answer>` | taking the smallest left   |
| selection_error | `<think>5,3,9:5;3,9:3;9:9</think><answer>5,3,9</answer>` | one wrong pick             |
| truncated       | `<think>5,3,9:3</think><answer>3</answer>`               | stopping early             |
| untagged        | `5,3,9:3;5,9:5;9:9`                                      | reasoning, no format       |
| filler          | `<think>5,3,9:3..;5,9:5;9:9.</think>…`                   | `mean` idle dots a step    |

Its rewards give partial credit. They are the lecture's `position` and `inclusion_ordering`, divided by their
maximum.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from encore.worlds.answers import TAGS, answer
from encore.worlds.documents import dots, tagged
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.steps import LONGEST_STEP, ends, take, texts


def given(problem: Problem) -> list[int]:
    """Return the numbers of a question such as `5,3,9=`."""
    return [int(number) for number in problem.question.rstrip("=").split(",")]


def written(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _read_numbers(text: str) -> list[int] | None:
    """Return the numbers of a text such as `3,5,9`; None for any other text."""
    parts = text.split(",") if len(text) <= LONGEST_STEP else []
    if not parts or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return [int(part) for part in parts]


def select(numbers: Sequence[int], faults: Sequence[bool], rng: random.Random) -> tuple[list[str], list[int]]:
    """Return the steps and the numbers that they pick: the smallest number left, or at a fault another."""
    left, steps, picked = [*numbers], [], []
    for fault in faults:
        best = min(left)
        pick = rng.choice([n for n in left if n != best]) if fault and len(left) > 1 else best
        steps.append(f"{written(left)}:{pick}")
        picked.append(pick)
        left.remove(pick)
    return steps, picked


def direct(world: "Sort", problem: Problem, rng: random.Random, *, right: float = 0.3) -> str:
    guess = sorted(given(problem))
    if rng.random() >= right:
        i = rng.randrange(len(guess) - 1)
        guess[i : i + 2] = guess[i + 1], guess[i]
    return f"<answer>{written(guess)}</answer>"


def guess(world: "Sort", problem: Problem, rng: random.Random) -> str:
    """Return an answer with the right count of random numbers, as of the lecture's untrained model."""
    return f"<answer>{written([rng.randint(0, world.largest) for _ in given(problem)])}</answer>"


def careless(problem: Problem, error: float, rng: random.Random) -> tuple[list[str], list[int]]:
    numbers = given(problem)
    return select(numbers, [rng.random() < error for _ in numbers], rng)


def selection(world: "Sort", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    steps, picked = careless(problem, error, rng)
    return tagged(";".join(steps), written(picked))


def selection_error(world: "Sort", problem: Problem, rng: random.Random) -> str:
    numbers = given(problem)
    wrong = rng.randrange(len(numbers) - 1)
    steps, picked = select(numbers, [i == wrong for i in range(len(numbers))], rng)
    return tagged(";".join(steps), written(picked))


def truncated(world: "Sort", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    steps, picked = careless(problem, error, rng)
    kept = rng.randint(1, len(steps) - 1)
    return tagged(";".join(steps[:kept]), written(picked[:kept]))


def untagged(world: "Sort", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    return ";".join(careless(problem, error, rng)[0])


def filler(
    world: "Sort", problem: Problem, rng: random.Random, *, mean: float = 2.0, error: float = 0.0
) -> str:
    steps, picked = careless(problem, error, rng)
    return tagged(";".join(step + dots(mean, rng) for step in steps), written(picked))


def position(problem: Problem, completion: str) -> float:
    """Return the share of positions with the right number; 0 if the answer has another count of numbers.

    It is the lecture's `sort_distance_reward`.
    """
    numbers, stated = given(problem), _read_numbers(answer(completion) or "")
    if stated is None or len(stated) != len(numbers):
        return 0.0
    return sum(x == y for x, y in zip(stated, sorted(numbers), strict=True)) / len(numbers)


def inclusion_ordering(problem: Problem, completion: str) -> float:
    """Return the share of 2n - 1 points that an answer to n numbers earns.

    There is a point for each of the n numbers that occurs, and one for each pair of neighbours in order. An
    answer with another count of numbers gets 0. `3,3,3` earns the points of all its pairs: the lecture's
    `sort_inclusion_ordering_reward` can be gamed in the same way.
    """
    numbers, stated = given(problem), _read_numbers(answer(completion) or "")
    if stated is None or len(stated) != len(numbers):
        return 0.0
    inclusion = sum(number in stated for number in numbers)
    ordering = sum(x <= y for x, y in pairwise(stated))
    return (inclusion + ordering) / (2 * len(numbers) - 1)


@dataclass(frozen=True)
class Sort:
    """World `sort`; dials: `numbers` [fewest, most] to sort, all different, from 0 to `largest`."""

    numbers: tuple[int, int] = (3, 6)
    largest: int = 9

    name: ClassVar[str] = "sort"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789=,:;.", *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {
        "position": position,
        "inclusion_ordering": inclusion_ordering,
    }
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind
        for kind in (direct, guess, selection, selection_error, truncated, untagged, filler)
    }

    def __post_init__(self) -> None:
        fewest, most = self.numbers
        require(
            2 <= fewest <= most <= 20, f"numbers: expected 2 <= fewest <= most <= 20, got {[*self.numbers]}"
        )
        require(self.largest <= 999, f"largest: expected at most 999, got {self.largest}")
        require(
            most <= self.largest + 1, f"largest: {most} different numbers do not fit into 0 to {self.largest}"
        )

    def problem(self, rng: random.Random) -> Problem:
        numbers = rng.sample(range(self.largest + 1), rng.randint(*self.numbers))
        return Problem(written(numbers) + "=", written(sorted(numbers)), len(numbers))

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the answer is the numbers in ascending order, with only commas between them."""
        return answer(completion) == problem.answer

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step is right: it lists the numbers left, in order, and picks the smallest.

        After a wrong pick, the numbers left are all but the picked number.
        """
        left = given(problem)
        verdicts = []
        for text in texts(completion, ";"):
            listed, _, pick = text.partition(":")
            picked = _read_numbers(pick)
            verdicts.append(bool(left) and listed == written(left) and picked == [min(left)])
            left, _ = take(left, (picked or [])[:1])
        return verdicts

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return ends(completion, ";")

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
