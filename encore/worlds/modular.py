"""World `modular`: sums modulo a number, where wrong working may lead to the right answer.

The question `3+5+7+4=` has the answer `9`, modulo 10; its difficulty is the number of terms. A step is the
sum so far. The kinds of document:

| kind      | example                                  | what it plants                               |
|-----------|------------------------------------------|----------------------------------------------|
| direct    | `<answer>9</answer>`                     | guesses, a share `right` is right            |
| chain     | `<think>8,5,9</think><answer>9</answer>` | reasoning from left to right                 |
| recited   | `<think>8,5,9,9,9</think>...`            | the last sum again, `again` times on average |
| truncated | `<think>8,5</think><answer>5</answer>`   | stopping early with a partial sum            |
| untagged  | `8,5,9`                                  | reasoning without the format                 |

The kinds that reason have two dials. With chance `error` a step is one too much or one too little; with
chance `lost` a step that passes the modulus is one too little, an error that most answers to a question may
share. Slips are carried forward, and one up and one down cancel: the answer is right then, the working is
not. A step needs the sum before it and one term, both at the same distance at every step, so a small model
can check it.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from encore.worlds.answers import TAGS, answer
from encore.worlds.documents import geometric, tagged
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.steps import ends, matches, texts
from encore.worlds.sums import expression, operands_of

SUM = re.compile(r"0|[1-9][0-9]{0,2}")


def _work(
    world: "Modular", problem: Problem, error: float, lost: float, rng: random.Random, most: int = 64
) -> list[int]:
    """Return at most `most` partial sums from left to right, with slips at chances `error` and `lost`."""
    first, *terms = operands_of(problem.question)
    sums, total = [], first
    for term in terms[:most]:
        off = rng.choice((-1, 1)) if rng.random() < error else 0
        if total + term >= world.modulus and rng.random() < lost:
            off = -1
        total = (total + term + off) % world.modulus
        sums.append(total)
    return sums


def _written(sums: list[int]) -> str:
    return ",".join(map(str, sums))


def direct(world: "Modular", problem: Problem, rng: random.Random, *, right: float = 0.1) -> str:
    off = 0 if rng.random() < right else rng.randrange(1, world.modulus)
    return f"<answer>{(int(problem.answer) + off) % world.modulus}</answer>"


def chain(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    sums = _work(world, problem, error, lost, rng)
    return tagged(_written(sums), str(sums[-1]))


def recited(
    world: "Modular",
    problem: Problem,
    rng: random.Random,
    *,
    again: float = 1.0,
    error: float = 0.0,
    lost: float = 0.0,
) -> str:
    sums = _work(world, problem, error, lost, rng)
    return tagged(_written(sums + sums[-1:] * geometric(again, rng)), str(sums[-1]))


def truncated(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    # number of steps that are kept, so that at least one is left out
    kept = rng.randint(1, problem.difficulty - 2)
    sums = _work(world, problem, error, lost, rng, kept)
    return tagged(_written(sums), str(sums[-1]))


def untagged(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    return _written(_work(world, problem, error, lost, rng))


@dataclass(frozen=True)
class Modular:
    """World `modular`; dials: number of `terms`, [fewest, most], and the `modulus`, above each term."""

    terms: tuple[int, int] = (3, 6)
    modulus: int = 10

    name: ClassVar[str] = "modular"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789+=,", *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {}
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind for kind in (direct, chain, recited, truncated, untagged)
    }

    def __post_init__(self) -> None:
        fewest, most = self.terms
        require(3 <= fewest <= most <= 64, f"terms: expected 3 <= fewest <= most <= 64, got {[*self.terms]}")
        require(3 <= self.modulus <= 1000, f"modulus: expected 3 to 1000, got {self.modulus}")

    def problem(self, rng: random.Random) -> Problem:
        count = rng.randint(*self.terms)
        terms = tuple(rng.randrange(self.modulus) for _ in range(count))
        return Problem(f"{expression(terms)}=", str(sum(terms) % self.modulus), count)

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the answer is right and in the usual form: not `05`, nor in another script."""
        return answer(completion) == problem.answer

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step is right: the sum before it plus the next term, by the modulus.

        After all terms, a right step repeats the sum. After a wrong sum the next step continues from it. Text
        that is no number is a wrong step, and leaves its term to the next step.
        """
        last, *terms = operands_of(problem.question)
        verdicts = []
        for match in matches(SUM, texts(completion, ",")):
            if match is None:
                verdicts.append(False)
                continue
            term = terms.pop(0) if terms else 0
            verdicts.append(int(match[0]) == (last + term) % self.modulus)
            last = int(match[0])
        return verdicts

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return ends(completion, ",")

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
