"""World `modular`: sums of digits modulo a number, of which a wrong working may have the right answer.

The question `3574=` has the answer `9`, modulo 10; its difficulty is the number of digits. Each step writes
the line before it again, with its first digit struck out (`-`) and added to the second. Kinds of document:

| kind      | example                                              | what it plants                         |
|-----------|------------------------------------------------------|----------------------------------------|
| direct    | `<answer>9</answer>`                                 | guesses, a share `right` is right      |
| chain     | `<think>-874,--54,---9</think><answer>9</answer>`    | reasoning from left to right           |
| repeated  | `<think>-874,-874,--54,---9</think>...`              | steps again, `again` times on average  |
| truncated | `<think>-874,--54</think><answer>5</answer>`         | stopping early with a partial sum      |
| untagged  | `-874,--54,---9`                                     | reasoning without the format           |

All that reason have two dials. With chance `error` a step is one too much or one too little; with chance
`lost` a step that passes the modulus is one too little, an error that most answers to a question may share.
Slips are carried forward, and one up and one down cancel: the answer is right then, the working is not. As
lines of one length stand below each other, a small model can tell at a step what the step before it was.
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

LINE = re.compile(r"(-{1,63})([0-9]{1,63})")


def _work(
    world: "Modular", problem: Problem, error: float, lost: float, rng: random.Random, most: int = 64
) -> tuple[list[str], int]:
    """The steps from left to right with the slips of these chances, `most` of them, and the last result."""
    digits, lines, total = _digits(problem), [], 0
    for place in range(1, len(digits))[:most]:
        total = digits[place - 1] + digits[place]
        off = rng.choice((-1, 1)) if rng.random() < error else 0
        if total >= world.modulus and rng.random() < lost:
            off = -1
        digits[place] = total = (total + off) % world.modulus
        lines.append("-" * place + "".join(map(str, digits[place:])))
    return lines, total


def _digits(problem: Problem) -> list[int]:
    return [int(digit) for digit in problem.question.rstrip("=")]


def direct(world: "Modular", problem: Problem, rng: random.Random, *, right: float = 0.1) -> str:
    off = 0 if rng.random() < right else rng.randrange(1, world.modulus)
    return f"<answer>{(int(problem.answer) + off) % world.modulus}</answer>"


def chain(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    steps, total = _work(world, problem, error, lost, rng)
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
    steps, total = _work(world, problem, error, lost, rng)
    return tagged(",".join(one for step in steps for one in [step] * (1 + geometric(again, rng))), str(total))


def truncated(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    kept = rng.randint(1, problem.difficulty - 2)  # steps; at least one is left out
    steps, total = _work(world, problem, error, lost, rng, kept)
    return tagged(",".join(steps), str(total))


def untagged(
    world: "Modular", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    return ",".join(_work(world, problem, error, lost, rng)[0])


@dataclass(frozen=True)
class Modular:
    """Dials: `terms` [fewest, most], digits below the `modulus`."""

    terms: tuple[int, int] = (3, 6)
    modulus: int = 10

    name: ClassVar[str] = "modular"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789=-,", *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {}
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind for kind in (direct, chain, repeated, truncated, untagged)
    }

    def __post_init__(self) -> None:
        fewest, most = self.terms
        require(3 <= fewest <= most <= 64, f"terms: expected 3 <= fewest <= most <= 64, got {[*self.terms]}")
        require(3 <= self.modulus <= 10, f"modulus: expected 3 to 10, got {self.modulus}")

    def problem(self, rng: random.Random) -> Problem:
        count = rng.randint(*self.terms)
        terms = [rng.randrange(self.modulus) for _ in range(count)]
        return Problem("".join(map(str, terms)) + "=", str(sum(terms) % self.modulus), count)

    def verify(self, problem: Problem, completion: str) -> bool:
        """Whether the answer is the digit as one writes it: `05` and other scripts are wrong."""
        return answer(completion) == problem.answer

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """A step is right if the line before it becomes it; a step written again is as right as it was.

        A wrong line is gone on from where it has the form of one: as long as the question, with more struck
        out than before.
        """
        digits, struck, verdicts = _digits(problem), 0, []
        length = len(digits)
        known: dict[str, bool] = {}
        for match in matches(LINE, scratchpad(completion).split(",")):
            if match is None:
                verdicts.append(False)
                continue
            if match[0] not in known:
                place, line = len(match[1]), [int(digit) for digit in match[2]]
                well_formed = place > struck and place + len(line) == length
                due = (
                    [(digits[struck] + digits[struck + 1]) % self.modulus, *digits[struck + 2 :]]
                    if well_formed
                    else []
                )
                known[match[0]] = well_formed and place == struck + 1 and line == due
                if well_formed:
                    digits, struck = [0] * place + line, place
            verdicts.append(known[match[0]])
        return verdicts

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return ends(completion, ",")

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
