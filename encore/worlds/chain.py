"""World `chain`: sums of several terms, with an optional scratchpad of partial results.

The question `3+5+7=` has the answer `15`; its difficulty is the number of terms. The kinds of document:

| kind        | example                                                 | what it plants                     |
|-------------|---------------------------------------------------------|------------------------------------|
| direct      | `<answer>21</answer>`                                   | guesses, a share `right` is right  |
| chain       | `<think>3+5=8,8+7=15</think><answer>15</answer>`        | reasoning from left to right       |
| chain_error | `<think>3+5=9,9+7=16</think><answer>16</answer>`        | one wrong step, carried forward    |
| truncated   | `<think>3+5=8</think><answer>8</answer>`                | stopping early with a partial sum  |
| untagged    | `3+5=8,8+7=15`                                          | reasoning without the format       |
| filler      | `<think>3+5=8..,8+7=15.</think><answer>15</answer>`     | idle length: `mean` dots a step    |
| recheck     | `<think>3+5=8,8+7=16wait8+7=15</think>…`                | going over the last steps again    |
| repaired    | `<think>3+5=9.,wait3+5=8..,8+7=15.</think>…`            | filler; slips are noticed at once  |
| pairwise    | of `3+5+7+2=`: `<think>3+5=8,7+2=9,8+9=17</think>…`     | a tree: the numbers stay small     |
| grouped     | `<think>3+5+7=15</think><answer>15</answer>`            | two terms a step: half the length  |

Every kind that reasons has the dial `error`: the chance that a step is wrong and is carried forward. In
`recheck` it is the chance that the last step is wrong, in `repaired` that any step is, and the step is then
corrected. So a recipe makes a strategy *better* by giving it a lower error than `chain`, or (`grouped`) by a
length cap under which it fits, and *rare* by a small weight. Kind `chain` also has the dial `lost`: the
chance that a step whose last digits add up to ten or more is one too little, as in `8+7=14`.

With the dial `slipped` some problems prescribe the beginning of the reply, `<think>3+5=9,`, whose step is
visibly wrong. `filler` carries the error forward, `repaired` corrects it, and no other kind of document can
continue such a beginning.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import repeat
from math import inf
from typing import Any, ClassVar

from encore.worlds.answers import TAGS, answer, scratchpad
from encore.worlds.documents import dots, tagged
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.slips import BETWEEN, carries, lost, unrepaired
from encore.worlds.steps import ends, matches, take, texts
from encore.worlds.sums import (
    STEP,
    Adder,
    adder,
    careless,
    expression,
    left_to_right,
    losing,
    operands_of,
    slip,
)

# largest number of summands of a step, in documents, and in right answers under the dial `worked`
SUMMANDS = 3


def _going_on(problem: Problem, add: Adder) -> Adder:
    """Return an adder that first returns the results of the steps in `problem.begun`, then sums by `add`."""
    begun = _begun(problem)
    return lambda operands: begun.pop(0) if begun else add(operands)


def _begun(problem: Problem) -> list[int]:
    """Return the results of the steps in the beginning of the reply that a problem prescribes."""
    return [int(result) for _, result in STEP.findall(problem.begun)]


def _idling(problem: Problem, steps: list[str], mean: float, rng: random.Random) -> str:
    """Return the joined steps, each with `mean` dots on average; the problem's own beginning gets none."""
    count = len(_begun(problem))
    return ",".join(steps[:count] + [step + dots(mean, rng) for step in steps[count:]])


def _tree(terms: tuple[int, ...], add: Adder) -> tuple[list[str], int]:
    """Return the steps that add neighbours in pairs until one number is left, and that number."""
    steps = []
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        sums = [add(pair) if len(pair) == 2 else pair[0] for pair in pairs]
        steps += [f"{expression(pair)}={s}" for pair, s in zip(pairs, sums, strict=True) if len(pair) == 2]
        terms = tuple(sums)
    return steps, terms[0]


def direct(world: "Chain", problem: Problem, rng: random.Random, *, right: float = 0.3) -> str:
    if rng.random() < right:
        return f"<answer>{problem.answer}</answer>"
    gold = int(problem.answer)
    guess = sum(world.draw(problem.difficulty, rng))  # the answer to another problem of the same length
    return f"<answer>{guess if guess != gold else slip(gold, rng)}</answer>"


def chain(
    world: "Chain", problem: Problem, rng: random.Random, *, error: float = 0.0, lost: float = 0.0
) -> str:
    add = losing(lost, careless(error, rng), rng)
    steps, total = left_to_right(operands_of(problem.question), add)
    return tagged(",".join(steps), str(total))


def chain_error(world: "Chain", problem: Problem, rng: random.Random) -> str:
    wrong = rng.randrange(problem.difficulty - 1)
    faults = (step == wrong for step in range(problem.difficulty))
    steps, total = left_to_right(operands_of(problem.question), adder(faults, rng))
    return tagged(",".join(steps), str(total))


def truncated(world: "Chain", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    n = problem.difficulty
    # number of terms that are kept, so that at least one is left out
    kept = rng.randint(min(2, n - 1), n - 1)
    steps, total = left_to_right(operands_of(problem.question)[:kept], careless(error, rng))
    return tagged(",".join(steps), str(total))


def untagged(world: "Chain", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    return ",".join(left_to_right(operands_of(problem.question), careless(error, rng))[0])


def filler(
    world: "Chain", problem: Problem, rng: random.Random, *, mean: float = 2.0, error: float = 0.0
) -> str:
    add = _going_on(problem, careless(error, rng))
    steps, total = left_to_right(operands_of(problem.question), add)
    return tagged(_idling(problem, steps, mean, rng), str(total))


def recheck(world: "Chain", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    steps, total = left_to_right(operands_of(problem.question), sum)
    again = steps[-rng.randint(1, min(2, len(steps))) :]
    if rng.random() < error:
        steps[-1] = f"{steps[-1].partition('=')[0]}={slip(total, rng)}"
    return tagged(f"{','.join(steps)}wait{','.join(again)}", str(total))


def repaired(
    world: "Chain", problem: Problem, rng: random.Random, *, mean: float = 2.0, error: float = 0.0
) -> str:
    steps, total = left_to_right(operands_of(problem.question), sum)
    add, written = _going_on(problem, careless(error, rng)), []
    for step in steps:
        operands, _, right = step.partition("=")
        if (tried := add(operands_of(operands))) != int(right):
            written.append(f"{operands}={tried}")
            step = f"wait{step}"
        written.append(step)
    return tagged(_idling(problem, written, mean, rng), str(total))


def pairwise(world: "Chain", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    steps, total = _tree(operands_of(problem.question), careless(error, rng))
    return tagged(",".join(steps), str(total))


def grouped(world: "Chain", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    steps, total = left_to_right(operands_of(problem.question), careless(error, rng), group=2)
    return tagged(",".join(steps), str(total))


def _followed(problem: Problem, completion: str) -> tuple[list[bool], list[int]]:
    """Return whether each step is right, as `Chain.steps` does, and the numbers left after all steps."""
    # the numbers left; the list never grows, because a step consumes at least what it adds
    left = [*operands_of(problem.question)]
    before: dict[tuple[int, ...], list[int]] = {}  # operands -> the numbers left when they were last added
    verdicts = []
    for match in matches(STEP, texts(completion, BETWEEN)):
        if match is None:
            verdicts.append(False)
            continue
        operands, result = operands_of(match[1]), int(match[2])
        rest, missing = take(left, operands)
        if missing and operands in before:
            rest, missing = take(before[operands], operands)
        if not missing:
            before[operands] = [*rest, *operands]
        if missing < len(operands):
            left = [*rest, result]
        verdicts.append(not missing and sum(operands) == result)
    return verdicts, left


def _leads(problem: Problem, completion: str) -> bool:
    """Return whether steps of at most SUMMANDS numbers lead from the terms to the answer, without a slip.

    A slip that is repaired later is allowed. A sum of all terms in one step would be a guess.
    """
    added = (operands_of(step[1]) for step in STEP.finditer(scratchpad(completion)))
    if any(len(operands) > SUMMANDS for operands in added) or unrepaired(problem, completion):
        return False
    return _followed(problem, completion)[1] == [int(problem.answer)]


@dataclass(frozen=True)
class Chain:
    """World `chain`, whose dials describe the sums.

    `terms`: number of terms, [fewest, most]. `digits`: most digits of a term. `operators`: "+" or "+-".
    `weights`: how often each number of terms is drawn, fewest first (uniform by default). `slipped`: share of
    problems that prescribe a wrong first step. `worked`: whether an answer counts only if right steps lead to
    it, so that no guess is right.
    """

    terms: tuple[int, int] = (3, 8)
    digits: int = 1
    operators: str = "+"
    weights: tuple[float, ...] = ()
    slipped: float = 0.0
    worked: bool = False

    name: ClassVar[str] = "chain"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789+-=,.", "wait", *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {
        reward.__name__: reward for reward in (unrepaired, carries, lost)
    }
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind
        for kind in (
            direct,
            chain,
            chain_error,
            truncated,
            untagged,
            filler,
            recheck,
            repaired,
            pairwise,
            grouped,
        )
    }

    def __post_init__(self) -> None:
        fewest, most = self.terms
        require(2 <= fewest <= most <= 64, f"terms: expected 2 <= fewest <= most <= 64, got {[*self.terms]}")
        require(1 <= self.digits <= 6, f"digits: expected 1 to 6, got {self.digits}")
        require(self.operators in ("+", "+-"), f'operators: expected "+" or "+-", got "{self.operators}"')
        expected = f"{most - fewest + 1} numbers >= 0, not all zero: one for each of {fewest} to {most} terms"
        require(
            not self.weights
            or (
                len(self.weights) == most - fewest + 1
                and min(self.weights) >= 0
                and 0 < sum(self.weights) < inf
            ),
            f"weights: expected {expected}; got {[*self.weights]}",
        )
        require(0 <= self.slipped <= 1, f"slipped: expected a number from 0 to 1, got {self.slipped}")

    def draw(self, count: int, rng: random.Random) -> tuple[int, ...]:
        """Draw `count` signed terms; the first is not negative, and no term is written `-0`."""
        top = 10**self.digits
        signs = ["+", *rng.choices(self.operators, k=count - 1)]
        return tuple(int(rng.random() * top) if s == "+" else -rng.randrange(1, top) for s in signs)

    def problem(self, rng: random.Random) -> Problem:
        counts = range(self.terms[0], self.terms[1] + 1)
        count = rng.choices(counts, weights=self.weights or None)[0]
        terms = self.draw(count, rng)
        problem = Problem(expression(terms) + "=", str(sum(terms)), count)
        if self.slipped and rng.random() < self.slipped:  # without the dial no random number is drawn
            (first,), _ = left_to_right(terms[:2], adder(repeat(True), rng))
            return replace(problem, begun=f"<think>{first},")
        return problem

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the answer is right and in the usual form: not `015`, nor in another script.

        With the dial `worked` the completion's steps must lead to the answer too.
        """
        return answer(completion) == problem.answer and (not self.worked or _leads(problem, completion))

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step is right: its sum is right, and its operands are unused terms or results.

        A wrong result may be used too, so an error that is carried forward makes only one step wrong. If a
        step is written again, the operands of its first writing are unused again: `wait` can repair it.
        """
        return _followed(problem, completion)[0]

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return ends(completion, BETWEEN)

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
