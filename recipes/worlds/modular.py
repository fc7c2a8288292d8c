"""World `modular`: sums modulo a number, of which a wrong working may have the right answer.

The question `3+5+7=` has the answer `5`, modulo 10; its difficulty is the number of terms. The kinds of
document:

| kind      | example                                              | what it plants                         |
|-----------|------------------------------------------------------|----------------------------------------|
| direct    | `<answer>5</answer>`                                 | guesses, a share `right` is right      |
| chain     | `<think>3+5=8,8+7=5</think><answer>5</answer>`       | reasoning from left to right           |
| repeated  | `<think>3+5=8,3+5=8,8+7=5</think><answer>5</answer>` | steps again, `again` times on average  |
| truncated | `<think>3+5=8</think><answer>8</answer>`             | stopping early with a partial sum      |
| untagged  | `3+5=8,8+7=5`                                        | reasoning without the format           |

All that reason have two dials. With chance `error` a step is one too much or one too little; with chance
`lost` a step that passes the modulus is one too little, an error that most answers to a question may share.
Slips are carried forward, and one up and one down cancel: the answer is right then, the working is not.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from recipes.worlds.answers import TAGS, answer, scratchpad
from recipes.worlds.documents import geometric, tagged
from recipes.worlds.protocol import Document, Problem, require
from recipes.worlds.steps import ends, matches

STEP = re.compile(r"(0|[1-9][0-9]{0,2})\+(0|[1-9][0-9]{0,2})=(0|[1-9][0-9]{0,2})")


def _terms(problem: Problem) -> list[int]:
    """The terms of `3+5+7=`."""
    return [int(term) for term in problem.question.rstrip("=").split("+")]


def _work(
    world: "Modular", terms: list[int], error: float, lost: float, rng: random.Random
) -> tuple[list[str], int]:
    """The steps from left to right with the slips of these chances, and the last result."""
    steps, total = [], terms[0]
    for term in terms[1:]:
        off = rng.choice((-1, 1)) if rng.random() < error else 0
        if total + term >= world.modulus and rng.random() < lost:
            off = -1
        result = (total + term + off) % world.modulus
        steps.append(f"{total}+{term}={result}")
        total = result
    return steps, total


def direct(world: "Modular", problem: Problem, rng: random.Random, *, right: float = 0.1) -> str:
    off = 0 if rng.random() < right else rng.randrange(1, world.modulus)
    return f"<answer>{(int(problem.answer) + off) % world.modulus}</answer>"


def chain(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    steps, total = _work(world, _terms(problem), error, lost, rng)
    return tagged(",".join(steps), str(total))


def repeated(
    world: "Modular",
    problem: Problem,
    rng: random.Random,
    *,
    again: float = 1.0,
    error: float = 0.0,
    lost: float = 0.0,
) -> str:
    steps, total = _work(world, _terms(problem), error, lost, rng)
    return tagged(",".join(one for step in steps for one in [step] * (1 + geometric(again, rng))), str(total))


def truncated(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    kept = rng.randint(2, problem.difficulty - 1)  # terms; at least one is left out
    steps, total = _work(world, _terms(problem)[:kept], error, lost, rng)
    return tagged(",".join(steps), str(total))


def untagged(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    return ",".join(_work(world, _terms(problem), error, lost, rng)[0])


@dataclass(frozen=True)
class Modular:
    """Dials: `terms` [fewest, most], each below the `modulus`."""

    terms: tuple[int, int] = (3, 6)
    modulus: int = 10

    name: ClassVar[str] = "modular"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789+=,", *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {}
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind for kind in (direct, chain, repeated, truncated, untagged)
    }

    def __post_init__(self) -> None:
        fewest, most = self.terms
        require(3 <= fewest <= most <= 64, f"terms: expected 3 <= fewest <= most <= 64, got {[*self.terms]}")
        require(3 <= self.modulus <= 1000, f"modulus: expected 3 to 1000, got {self.modulus}")

    def problem(self, rng: random.Random) -> Problem:
        count = rng.randint(*self.terms)
        terms = [rng.randrange(self.modulus) for _ in range(count)]
        return Problem("+".join(map(str, terms)) + "=", str(sum(terms) % self.modulus), count)

    def verify(self, problem: Problem, completion: str) -> bool:
        """Whether the answer is the number as one writes it: `05` and other scripts are wrong."""
        return answer(completion) == problem.answer

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """A step is right if it adds the next term to the last result, and its own result is right.

        A step that leaves terms out is wrong, and the working goes on behind them; a wrong result is gone on
        from. A step written again is as right as it was.
        """
        terms, verdicts = _terms(problem), []
        last, place = terms[0], 1
        known: dict[str, bool] = {}
        for match in matches(STEP, scratchpad(completion).split(",")):
            if match is None:
                verdicts.append(False)
                continue
            a, b, result = map(int, match.groups())
            follows = a == last and place < len(terms) and b == terms[place]
            if not follows and match[0] in known:
                verdicts.append(known[match[0]])
                continue
            if b in terms[place:]:
                place = terms.index(b, place) + 1
            last = result
            verdicts.append(follows and (a + b) % self.modulus == result)
            known[match[0]] = verdicts[-1]
        return verdicts

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return ends(completion, ",")

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
