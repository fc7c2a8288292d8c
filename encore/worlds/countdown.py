"""World `countdown`: reach a target with `+ - *`, using each of a few numbers once (TinyZero, Four Habits).

The question `3,5,7:56` (numbers ascending, so that no test question is a shuffled train question) has the
answer `(3+5)*7`, or any other expression with that value, `/` and spaces too; its difficulty is the count of
numbers. The kinds of document:

| kind      | example                                               | what it plants                        |
|-----------|-------------------------------------------------------|---------------------------------------|
| direct    | `<answer>3*5+7</answer>`                              | guesses, a share `right` is right     |
| solve     | `<think>3+5=8,8*7=56</think><answer>(3+5)*7</answer>` | subgoals, right at the first try      |
| search    | `<think>3*5=15,15+7=22no3+5=8,8*7=56yes</think>…`     | backtracking `no` and verifying `yes` |
| truncated | `<think>3+5=8</think><answer>3+5</answer>`            | stopping early                        |
| untagged  | `3+5=8,8*7=56`                                        | reasoning without the format          |
| filler    | `<think>......</think><answer>3*5+7</answer>`         | length without reasoning: `mean` dots |
| single    | `<think>3*5=15,15+7=22</think><answer>3*5+7</answer>` | one try, whatever it gives            |
| checked   | `…15+7=22:56no3+5=8,8*7=56:56yes</think>…`            | backtracking; each try's result is    |
|           |                                                       | compared with the target, truthfully  |
| backward  | `<think>56/7=8,3+5=8</think><answer>(3+5)*7</answer>` | starting from the target              |

`search` and `checked` fail `tries` times on average before their last try. `right` is the share of documents
that end with the solution; the others present a miss as the answer (at 0 all answers are wrong). `search`
then says `yes` after a miss, `checked` never does. reasoning-gym's generator writes English, and its scorer
evaluates a model's text with SymPy, so neither is used here; the scorer checks our answers in the tests.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from encore.errors import UserError
from encore.worlds.answers import TAGS, answer, scratchpad
from encore.worlds.documents import dots, tagged
from encore.worlds.expressions import OPERATORS, Work, combine, makes, work_out
from encore.worlds.habits import HABITS, STEP
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.steps import ends, matches, take

CHECK = r"(?::[0-9]{1,9})?"  # the target again, after a result that is compared with it
UNDONE = {"+": "-", "-": "+", "*": "/"}
LARGEST_RESULT = 999  # largest result of a multiplication in a document


def attempt(numbers: Sequence[int], rng: random.Random, operators: str = "+-*") -> Work:
    """Return a random expression that uses each number once, without negative or very large results.

    With the operators `+-` it has no brackets, and its steps go from left to right.
    """
    parts = [Work(str(number), number, (number,)) for number in numbers]
    if operators == "+-":  # with these operators, brackets would reach no other values
        rng.shuffle(parts)
        work = parts.pop()
        for part in parts:
            sign = rng.choice(operators) if work.value >= part.value else "+"
            work = combine(work, sign, part)
        return work
    while len(parts) > 1:
        x, y = (parts.pop(rng.randrange(len(parts))) for _ in range(2))
        sign = rng.choice(operators)
        if sign == "*" and x.value * y.value > LARGEST_RESULT:
            sign = "+"
        parts.append(combine(y, sign, x) if sign == "-" and x.value < y.value else combine(x, sign, y))
    return parts[0]


def _given(problem: Problem) -> tuple[tuple[int, ...], int]:
    """Return the numbers and the target of `3,5,7:56`."""
    numbers, _, target = problem.question.partition(":")
    return tuple(int(number) for number in numbers.split(",")), int(target)


def _miss(world: "Countdown", problem: Problem, rng: random.Random) -> Work:
    """Return a random expression of the problem's numbers that misses the target.

    There always is one, because the sum and the difference of positive numbers differ.
    """
    numbers, target = _given(problem)
    while (work := attempt(numbers, rng, world.operators)).value == target:
        pass
    return work


def solution(problem: Problem) -> Work:
    work = work_out(problem.answer)
    if work is None:
        raise ValueError(f"no expression: {problem.answer!r}")
    return work


def _ending(world: "Countdown", problem: Problem, rng: random.Random, right: float) -> Work:
    """Return the solution with probability `right`, otherwise a miss."""
    return solution(problem) if rng.random() < right else _miss(world, problem, rng)


def _tries(
    world: "Countdown", problem: Problem, rng: random.Random, tries: float, right: float
) -> list[Work]:
    """Return `tries` misses on average and then the last try, the solution with probability `right`."""
    return [*(_miss(world, problem, rng) for _ in dots(tries, rng)), _ending(world, problem, rng, right)]


def direct(world: "Countdown", problem: Problem, rng: random.Random, *, right: float = 0.1) -> str:
    return f"<answer>{_ending(world, problem, rng, right).expression}</answer>"


def solve(world: "Countdown", problem: Problem, rng: random.Random) -> str:
    work = solution(problem)
    return tagged(",".join(work.steps), work.expression)


def search(
    world: "Countdown", problem: Problem, rng: random.Random, *, tries: float = 1.0, right: float = 1.0
) -> str:
    works = _tries(world, problem, rng, tries, right)
    scratch = "no".join(",".join(work.steps) for work in works)
    return tagged(scratch + "yes", works[-1].expression)


def single(world: "Countdown", problem: Problem, rng: random.Random, *, right: float = 0.3) -> str:
    work = _ending(world, problem, rng, right)
    return tagged(",".join(work.steps), work.expression)


def checked(
    world: "Countdown", problem: Problem, rng: random.Random, *, tries: float = 1.0, right: float = 1.0
) -> str:
    works, target = _tries(world, problem, rng, tries, right), _given(problem)[1]
    ends = (f":{target}{'yes' if work.value == target else 'no'}" for work in works)
    scratch = "".join(",".join(work.steps) + end for work, end in zip(works, ends, strict=True))
    return tagged(scratch, works[-1].expression)


def backward(world: "Countdown", problem: Problem, rng: random.Random, *, right: float = 1.0) -> str:
    """Return a document that first undoes the last step, from the target, and then has the steps before it.

    If the last step combines two results, as in `(1+2)*(3+4)`, nothing is undone.
    """
    steps = solution(problem).steps
    left, made = [str(number) for number in _given(problem)[0]], list[str]()
    for x, _, y, result in map(_parts, steps[:-1]):
        for operand in (x, y):
            (made if operand in made else left).remove(operand)
        made.append(result)
    if left:
        x, sign, y, target = _parts(steps[-1])
        undone = f"{target}{UNDONE[sign]}{y}={x}" if y in left else f"{target}{UNDONE[sign]}{x}={y}"
        if sign == "-" and y not in left:
            undone = f"{x}-{target}={y}"
        steps = (undone, *steps[:-1])
    return tagged(",".join(steps), _ending(world, problem, rng, right).expression)


def _parts(step: str) -> list[str]:
    """Return x, sign, y and the result of a document's step."""
    return re.findall("[0-9]+|[+*-]", step)


def truncated(world: "Countdown", problem: Problem, rng: random.Random) -> str:
    work = solution(problem)
    return tagged(work.steps[0], work.steps[0].partition("=")[0])


def untagged(world: "Countdown", problem: Problem, rng: random.Random) -> str:
    return ",".join(solution(problem).steps)


def filler(
    world: "Countdown", problem: Problem, rng: random.Random, *, mean: float = 12.0, right: float = 0.1
) -> str:
    return tagged(dots(mean, rng), _ending(world, problem, rng, right).expression)


@dataclass(frozen=True)
class Countdown:
    """World `countdown`, whose dials describe the questions.

    `numbers` is [fewest, most] numbers in a question, and `largest` the largest of them; `target` is [lowest,
    highest]; `operators`, of questions and documents, are "+-*" or "+-".
    """

    numbers: tuple[int, int] = (3, 4)
    largest: int = 20
    target: tuple[int, int] = (1, 99)
    operators: str = "+-*"

    name: ClassVar[str] = "countdown"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789+-*/()=,:.", "no", "yes", *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = HABITS
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind
        for kind in (direct, solve, search, truncated, untagged, filler, single, checked, backward)
    }

    def __post_init__(self) -> None:
        fewest, most = self.numbers
        low, high = self.target
        require(
            2 <= fewest <= most <= 6, f"numbers: expected 2 <= fewest <= most <= 6, got {[*self.numbers]}"
        )
        require(2 <= self.largest <= 100, f"largest: expected 2 to 100, got {self.largest}")
        require(
            0 <= low <= high <= 999, f"target: expected 0 <= lowest <= highest <= 999, got {[*self.target]}"
        )
        require(self.operators in ("+-", "+-*"), f'operators: expected "+-" or "+-*", got "{self.operators}"')

    def problem(self, rng: random.Random) -> Problem:
        """Return a problem. Raises UserError if 10,000 random expressions all miss the range of targets."""
        count = rng.randint(*self.numbers)
        for _ in range(10_000):
            work = attempt([rng.randint(1, self.largest) for _ in range(count)], rng, self.operators)
            if self.target[0] <= work.value <= self.target[1]:
                numbers = ",".join(map(str, sorted(work.numbers)))
                return Problem(f"{numbers}:{work.value}", work.expression, count)
        raise UserError(f"target: {count} numbers up to {self.largest} (almost) never make {[*self.target]}")

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the answer is an expression that uses each number once and equals the target."""
        numbers, target = _given(problem)
        return makes(work_out(answer(completion) or ""), numbers, target)

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step is right: a right result, from operands that are not used yet.

        A step may also begin at the target. `no` starts a new try, with all the numbers.
        """
        verdicts = []
        numbers, target = _given(problem)
        for line in re.split(f"{CHECK}no", scratchpad(completion).replace(".", "")):
            left = [*numbers, target]
            for match in matches(STEP, re.split(f",|{CHECK}yes", line)):
                if match is None:
                    verdicts.append(False)
                    continue
                a, b, result = int(match[1]), int(match[3]), int(match[4])
                rest, missing = take(left, (a, b))
                if missing < 2:
                    left = [*rest, result]
                possible = not missing and (b or match[2] != "/")
                verdicts.append(bool(possible) and OPERATORS[match[2]](a, b) == result)
        return verdicts

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return ends(completion, f",|{CHECK}(?:yes|no)")

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
