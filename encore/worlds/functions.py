"""World `functions`: write a Python function of one whole number, judged by unit tests in the sandbox.

The question `add3 mul2|2:10 5:16` says what is done to x, step by step, and shows tests, input:output. Its
difficulty is the number of steps. The answer is the body of `def f(x):`, here `return (x+3)*2`; it is right
if it passes the shown tests and further tests that the question does not show. The kinds of document:

| kind     | example                                             | what it plants                        |
|----------|-----------------------------------------------------|---------------------------------------|
| direct   | `<answer>return (x+3)*2</answer>`                   | programs, a share `right` is right    |
| derive   | `<think>x+3;(x+3)*2</think><answer>return …`        | reasoning, each step wrong with       |
|          |                                                     | chance `error`, and carried on        |
| untagged | `x+3;(x+3)*2`                                       | the same without the format           |
| lookup   | `<answer>return {2:10,5:16}[x]</answer>`            | passing the shown tests and no others |

encore/sandbox/verdicts.py has its rewards beside accuracy.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from encore.errors import UserError
from encore.sandbox.pool import Job, run
from encore.sandbox.values import same
from encore.sandbox.verdicts import REWARDS, Verdicts, passed
from encore.worlds.answers import TAGS, answer
from encore.worlds.documents import tagged
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.steps import ends, texts

Step = tuple[str, int]  # an operation, and its number
DO: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda x, n: x + n,
    "sub": lambda x, n: x - n,
    "mul": lambda x, n: x * n,
    "mod": lambda x, n: x % n,
    "min": min,
    "max": max,
}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "mod": "%"}
LARGEST = 999  # largest value in a test that a question shows
LONGEST = 400  # most characters of a program that is run
SHOWN = range(10)  # inputs of the tests that a question shows
HIDDEN = range(-20, 41)  # inputs of the tests that a question does not show
UNSEEN = 6  # number of tests that a question does not show
TOLD = 3  # most tests that a feedback shows


def done(steps: list[Step], x: int) -> int:
    for name, number in steps:
        x = DO[name](x, number)
    return x


def put(expression: str, step: Step) -> str:
    """Return the expression with one more step: `x+3`, then `(x+3)*2`."""
    name, number = step
    if name not in SIGNS:
        return f"{name}({expression},{number})"
    call = expression[:3] in DO and expression.count("(") == 1 and expression.endswith(")")
    closed = call or expression == "x"
    return f"{expression if closed else f'({expression})'}{SIGNS[name]}{number}"


def given(problem: Problem) -> tuple[list[Step], dict[int, int]]:
    """Return the steps and the shown tests, input -> output, of a question `add3 mul2|2:10 5:16`."""
    listed, _, shown = problem.question.partition("|")
    tests = (test.split(":") for test in shown.split())
    return [(step[:3], int(step[3:])) for step in listed.split()], {int(x): int(y) for x, y in tests}


def unseen(problem: Problem) -> dict[int, int]:
    """Return the tests, input -> output, that the question does not show; the question fixes them."""
    steps, tests = given(problem)
    inputs = [x for x in HIDDEN if x not in tests]
    return {x: done(steps, x) for x in random.Random(problem.question).sample(inputs, UNSEEN)}


def _step(rng: random.Random) -> Step:
    name = rng.choice([*DO])
    return name, rng.randint(2, 9)


def _slip(step: Step, rng: random.Random) -> Step:
    """Return the step with another number, or another operation."""
    while (slip := (step[0], rng.randint(2, 9)) if rng.random() < 0.5 else (_step(rng)[0], step[1])) == step:
        pass
    return slip


def _derived(problem: Problem, error: float, rng: random.Random) -> list[str]:
    """Return the expression after each step; each step slips with chance `error`."""
    expressions = ["x"]
    for step in given(problem)[0]:
        expressions.append(put(expressions[-1], _slip(step, rng) if rng.random() < error else step))
    return expressions[1:]


def direct(world: "Functions", problem: Problem, rng: random.Random, *, right: float = 0.5) -> str:
    steps, tests = given(problem)
    every = {**tests, **unseen(problem)}
    while rng.random() >= right:
        place = rng.randrange(len(steps))
        slipped = [*steps[:place], _slip(steps[place], rng), *steps[place + 1 :]]
        if any(done(slipped, x) != y for x, y in every.items()):
            return f"<answer>return {_expression(slipped)}</answer>"
        right = 0.0  # a wrong program may be right by luck, as max(min(x,3),5) is, so another is drawn
    return f"<answer>return {_expression(steps)}</answer>"


def _expression(steps: list[Step]) -> str:
    expression = "x"
    for step in steps:
        expression = put(expression, step)
    return expression


def derive(world: "Functions", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    expressions = _derived(problem, error, rng)
    return tagged(";".join(expressions), f"return {expressions[-1]}")


def untagged(world: "Functions", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    return ";".join(_derived(problem, error, rng))


def lookup(world: "Functions", problem: Problem, rng: random.Random) -> str:
    shown = ",".join(f"{x}:{y}" for x, y in given(problem)[1].items())
    return f"<answer>return {{{shown}}}[x]</answer>"


@lru_cache(maxsize=1 << 16)
def _passed(problem: Problem, body: str) -> Verdicts:
    """Return the verdicts of the tests on the function with this body, which runs in the sandbox."""
    shown, others = given(problem)[1], unseen(problem)
    tests = {**shown, **others}
    if not body or len(body) > LONGEST:
        return (False,) * len(shown), (False,) * len(others)
    program = "def f(x):\n " + body.replace("\n", "\n ")
    (result,) = run([Job(program, tuple(f"f({x})" for x in tests))])
    right = tuple(same(value, y) for value, y in zip(result.values, tests.values(), strict=True))
    return right[: len(shown)], right[len(shown) :]


def _verdicts(problem: Problem, completion: str) -> Verdicts:
    body = answer(completion) or ""  # "" for no answer, or an empty answer
    return _passed(Problem(problem.question, "", 0), body)


def _reward(rule: Callable[[Verdicts], float]) -> Callable[[Problem, str], float]:
    return lambda problem, completion: rule(_verdicts(problem, completion))


@dataclass(frozen=True)
class Functions:
    """World `functions`; dials: `operations` [fewest, most] of a function; `shown`, the number of tests."""

    operations: tuple[int, int] = (1, 3)
    shown: int = 2

    name: ClassVar[str] = "functions"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789+-*%(),:;{}[]|x ", "return ", *DO, *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {
        name: _reward(rule) for name, rule in REWARDS.items()
    }
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind for kind in (direct, derive, untagged, lookup)
    }

    def __post_init__(self) -> None:
        fewest, most = self.operations
        require(
            1 <= fewest <= most <= 9,
            f"operations: expected 1 <= fewest <= most <= 9, got {[*self.operations]}",
        )
        require(1 <= self.shown <= len(SHOWN), f"shown: expected 1 to {len(SHOWN)}, got {self.shown}")

    def problem(self, rng: random.Random) -> Problem:
        """Return a problem whose shown tests have different outputs.

        Raises UserError if none of 10,000 functions has such tests.
        """
        for _ in range(10_000):
            steps = [_step(rng) for _ in range(rng.randint(*self.operations))]
            listed = " ".join(f"{name}{number}" for name, number in steps)
            # a function always has the same tests, so it has one question and one split
            inputs = random.Random(listed).sample(SHOWN, self.shown)
            shown = {x: done(steps, x) for x in sorted(inputs)}
            if max(map(abs, shown.values())) <= LARGEST and len({*shown.values()}) == len(shown):
                question = f"{listed}|{' '.join(f'{x}:{y}' for x, y in shown.items())}"
                return Problem(question, f"return {_expression(steps)}", len(steps))
        most = f"{[*self.operations]} operations"
        raise UserError(f"shown: functions of {most} (almost) never have {self.shown} different outputs")

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the program in the answer passes every test."""
        return passed(_verdicts(problem, completion))

    def feedback(self, problem: Problem, completion: str) -> str:
        """Return the first tests that the program fails, as a question shows tests; "" if it passes all."""
        shown, others = _verdicts(problem, completion)
        tests = {**given(problem)[1], **unseen(problem)}
        verdicts = zip(tests.items(), [*shown, *others], strict=True)
        return " ".join([f"{x}:{y}" for (x, y), passes in verdicts if not passes][:TOLD])

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step is right: the expression before it, with the question's next operation."""
        left, before, verdicts = given(problem)[0], "x", []
        for text in texts(completion, ";"):
            verdicts.append(bool(left) and text == put(before, left[0]))
            left, before = left[1:], text[:LONGEST]
        return verdicts

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return ends(completion, ";")

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
