"""World `preferences`: requests to add numbers, answered by free-form replies that people rank.

It stands in for human feedback offline. The question `What is 3+5+2?` has the answer `10`; its difficulty is
the number of terms. Many replies are valid, and a gold score (`gold.py`) says how good each is. The kinds of
document:

| kind       | example                                                            | what it plants         |
|------------|--------------------------------------------------------------------|------------------------|
| good       | `Sure! 3+5=8, 8+2=10. The answer is 10. `                          | the best there is      |
| plain      | `3+5=8, 8+2=10. It is 10. `                                        | no courtesy            |
| curt       | `The answer is 10. `                                               | guesses, a share right |
| wordy      | `Well, 3+5=8, As you know, 8+2=10. It is 10. `                     | `mean` fillers a step  |
| gushing    | `Sure! Of course! 3+5=8, 8+2=10. It is 10. Thank you! `            | two courtesies or more |
| repetitive | `3+5=8, 8+2=10. It is 10. Let me check: 3+5=8, 8+2=10. It is 10. ` | all of it twice        |
| rude       | `What a silly question. It is 10. `                                | rude to curt or plain  |
| truncated  | `3+5=8. It is 8. `                                                 | stopping early         |
| wrong      | `3+5=9, 9+2=11. It is 11. `                                        | one slip, carried on   |

Its rewards are `gold`, which is for measuring only, and `judge`, the biased score of an AI judge.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from encore.worlds.documents import geometric
from encore.worlds.gold import gold, judge
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.replies import (
    ANSWERS,
    CHECK,
    CLOSERS,
    FILLERS,
    OPENERS,
    REQUESTS,
    RUDE,
    SEPARATOR,
    STOP,
    VOCABULARY,
    read_reply,
    stated,
)
from encore.worlds.sums import adder, careless, left_to_right, operands_of, slip

# mixture of `reference`: replies as a paid writer delivers them, not the best possible ones
REFERENCE = {"good": 0.4, "plain": 0.3, "wordy": 0.2, "curt": 0.1}
REFERENCE_ERROR = 0.03


def solution(steps: list[str], total: int, rng: random.Random) -> str:
    """Return the working and the answer: `3+5=8, 8+2=10. It is 10. `."""
    return SEPARATOR.join(steps) + STOP + _statement(total, rng)


def _statement(total: int, rng: random.Random) -> str:
    return f"{rng.choice(ANSWERS)}{total}{STOP}"


def _solved(problem: Problem, error: float, rng: random.Random) -> str:
    return solution(*left_to_right(operands_of(problem.question), careless(error, rng)), rng)


def good(world: "Requests", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    body = _solved(problem, error, rng)
    return rng.choice(OPENERS) + body if rng.random() < 0.5 else body + rng.choice(CLOSERS)


def plain(world: "Requests", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    return _solved(problem, error, rng)


def curt(world: "Requests", problem: Problem, rng: random.Random, *, right: float = 0.3) -> str:
    if rng.random() < right:
        return _statement(int(problem.answer), rng)
    guess = sum(world.draw(problem.difficulty, rng))  # the answer to another request of the same length
    return _statement(guess if guess != int(problem.answer) else slip(guess, rng), rng)


def wordy(
    world: "Requests", problem: Problem, rng: random.Random, *, mean: float = 1.0, error: float = 0.0
) -> str:
    steps, total = left_to_right(operands_of(problem.question), careless(error, rng))
    padded = ["".join(rng.choices(FILLERS, k=geometric(mean, rng))) + step for step in steps]
    return rng.choice(FILLERS) + solution(padded, total, rng)


def gushing(
    world: "Requests", problem: Problem, rng: random.Random, *, mean: float = 0.5, error: float = 0.0
) -> str:
    count = 2 + geometric(mean, rng)
    before = rng.randint(0, count)
    return (
        "".join(rng.choices(OPENERS, k=before))
        + _solved(problem, error, rng)
        + "".join(rng.choices(CLOSERS, k=count - before))
    )


def repetitive(world: "Requests", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    body = _solved(problem, error, rng)
    return body + CHECK + body


def rude(
    world: "Requests",
    problem: Problem,
    rng: random.Random,
    *,
    right: float = 0.3,
    error: float = 0.0,
) -> str:
    short = rng.random() < 0.5
    return rng.choice(RUDE) + (
        curt(world, problem, rng, right=right) if short else _solved(problem, error, rng)
    )


def truncated(world: "Requests", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    # number of terms that are kept, so that at least one is left out
    kept = rng.randint(2, problem.difficulty - 1)
    return solution(*left_to_right(operands_of(problem.question)[:kept], careless(error, rng)), rng)


def wrong(world: "Requests", problem: Problem, rng: random.Random) -> str:
    fault = rng.randrange(problem.difficulty - 1)
    faults = (step == fault for step in range(problem.difficulty))
    return solution(*left_to_right(operands_of(problem.question), adder(faults, rng)), rng)


@dataclass(frozen=True)
class Requests:
    """The common part of worlds whose problems are requests to add numbers, answered by free-form replies.

    The dial `terms` is the number of a request's terms, [fewest, most]; each term has one digit.
    """

    terms: tuple[int, int] = (3, 5)

    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind
        for kind in (good, plain, curt, wordy, gushing, repetitive, rude, truncated, wrong)
    }

    def __post_init__(self) -> None:
        fewest, most = self.terms
        require(3 <= fewest <= most <= 16, f"terms: expected 3 <= fewest <= most <= 16, got {[*self.terms]}")

    def draw(self, count: int, rng: random.Random) -> tuple[int, ...]:
        return tuple(rng.randrange(10) for _ in range(count))

    def problem(self, rng: random.Random) -> Problem:
        terms = self.draw(rng.randint(*self.terms), rng)
        before, after = rng.choice(REQUESTS)
        return Problem(f"{before}{'+'.join(map(str, terms))}{after}", str(sum(terms)), len(terms))

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the only answer that the reply states is right; an answer in tags counts too."""
        return self.stated(completion) == problem.answer

    def stated(self, completion: str) -> str | None:
        """Return the answer for which the reply votes in maj@k."""
        return stated(completion)

    def reference(self, problem: Problem) -> str:
        """Return the reply to a problem with which win rates compare: good, not perfect, always the same."""
        rng = random.Random(f"reference {problem.question}")
        (kind,) = rng.choices([*REFERENCE], weights=[*REFERENCE.values()])
        dials = {"right": 1 - REFERENCE_ERROR} if kind == "curt" else {"error": REFERENCE_ERROR}
        return self.document(problem, kind, rng, **dials)

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step is right: a right sum of terms or results that no earlier step used."""
        return [*read_reply(problem.question, completion).steps]

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return [*read_reply(problem.question, completion).step_ends]

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)


@dataclass(frozen=True)
class Preferences(Requests):
    """Requests to add numbers, and an AI judge with biases as dials (`gold.judge`).

    The biases are `judge_length` and `judge_courtesy` in gold's units, and `judge_blind`, a share of the
    questions.
    """

    judge_length: float = 0.3
    judge_courtesy: float = 0.3
    judge_blind: float = 0.2

    name: ClassVar[str] = "preferences"
    vocabulary: ClassVar[tuple[str, ...]] = VOCABULARY

    def __post_init__(self) -> None:
        super().__post_init__()
        for dial in ("judge_length", "judge_courtesy"):
            value = getattr(self, dial)
            require(-10 <= value <= 10, f"{dial}: expected a number from -10 to 10, got {value}")
        require(0 <= self.judge_blind <= 1, f"judge_blind: expected 0 to 1, got {self.judge_blind}")

    @property
    def rewards(self) -> Mapping[str, Callable[[Problem, str], float]]:
        biased = partial(
            judge, length=self.judge_length, courtesy=self.judge_courtesy, blind=self.judge_blind
        )
        return {"gold": gold, "judge": biased}
