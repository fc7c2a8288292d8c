"""Verdicts on programs by the unit tests of a data set, run in the sandbox: `verifier: tests`.

A row's answer is its tests: the asserts of MBPP, a list of them as text, or HumanEval's `check`, followed by
`check(name)`. Each assert becomes a call and its expected value, which is computed apart from the program:

| assert                                         | call                | expected                  |
|------------------------------------------------|---------------------|---------------------------|
| `assert f(2) == 4`                             | `f(2)`              | the value of `4`          |
| `assert f(2) is None`, `assert f(2) is True`   | `f(2)`              | `None`, `True` and no `1` |
| `assert set(f([1])) == set([1])`               | `set(f([1]))`       | the value of `set([1])`   |
| `assert abs(f(2) - 1.5) < 1e-6`                | `f(2)`              | 1.5, within 1e-6          |
| `assert math.isclose(f(2), 1.5, rel_tol=0.01)` | `f(2)`              | 1.5, within 0.01 of it    |
| `assert f(2)`, `assert not f(2)`               | `bool(f(2))`        | `True`, `False`           |

Anything else, such as an assert in a loop, is not read, and no program passes a problem with such a test.
Benchmarks have few of these problems. Tests whose text stands in the question count as shown to the policy.

The program of a completion is the last fenced block after `</think>`; without a block, it is all text after
`</think>`. A body without its `def` continues the question, as completions of HumanEval do.
"""

import ast
import builtins
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from encore.sandbox.pool import Job, Result, run
from encore.sandbox.values import Failed, same
from encore.sandbox.verdicts import Verdicts
from encore.worlds.protocol import Problem

FENCE = re.compile(r"```[a-zA-Z0-9]*[ \t]*\n(.*?)```", re.DOTALL)
LONGEST = 100_000  # characters; a longer answer has no tests, a longer completion is no program
UNFINISHED = ("time", "SIGXCPU")  # the words for a program that ran out of time
BELOW = (ast.Lt, ast.LtE)
SHORTLY = reprlib.Repr()  # writes a value in tens of characters, however large or deep it is


@dataclass(frozen=True)
class UnitTest:
    """A test: `call` must give the value of `expected`.

    A number may differ by `absolute`, or by `relative` times its size. `identical`: the value must also have
    the same type, as with `is`.
    """

    call: str
    expected: str
    absolute: float = 0.0
    relative: float = 0.0
    text: str = ""  # the text of the test in the data set
    identical: bool = False


@dataclass(frozen=True)
class UnitTests:
    """The tests of a problem. `tests` is () if one of them cannot be read.

    `setup` has the imports; `name` is the name of the tested function.
    """

    tests: tuple[UnitTest, ...] = ()
    setup: str = ""
    name: str = ""


class Unreadable(Exception):
    """An error for a test that has none of the known forms."""


# errors of reading a text without a known form; the parser raises MemoryError when its stack is full
UNREADABLE = (
    *(Unreadable, SyntaxError, ValueError, TypeError, LookupError),
    *(OverflowError, RecursionError, MemoryError),
)


@lru_cache(maxsize=4096)
def read_tests(answer: str) -> UnitTests:
    """Return the tests in a row's answer; () if the answer cannot be read. Never raises."""
    try:
        if len(answer) > LONGEST:
            raise Unreadable
        statements = ast.parse(answer.strip()).body
        if len(statements) == 1 and isinstance(statements[0], ast.Expr):
            asserts = ast.literal_eval(statements[0].value)
            statements = ast.parse("\n".join(asserts)).body
        return _of_statements(statements)
    except UNREADABLE:
        return UnitTests()


def _of_statements(statements: Sequence[ast.stmt]) -> UnitTests:
    imports = [statement for statement in statements if isinstance(statement, ast.Import | ast.ImportFrom)]
    checks = [
        statement
        for statement in statements
        if isinstance(statement, ast.FunctionDef) and statement.name == "check"
    ]
    name = ""
    for statement in statements:
        if checks and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            (argument,) = statement.value.args
            name = ast.unparse(argument)
            statements = [_Renamed(checks[0].args.args[0].arg, name).visit(line) for line in checks[0].body]
    asserts = [statement for statement in statements if isinstance(statement, ast.Assert)]
    others = [
        statement
        for statement in statements
        if not isinstance(statement, ast.Assert | ast.Import | ast.ImportFrom)
    ]
    if any(
        not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in others
    ):
        raise Unreadable  # raised for example at a loop; a comment in quotes is not a test
    name = name or _called(asserts)
    tests = [
        _of_assert(statement, name) for statement in asserts if not isinstance(statement.test, ast.Constant)
    ]
    return UnitTests(tuple(tests), "\n".join(map(ast.unparse, imports)), name)


class _Renamed(ast.NodeTransformer):
    """A transformer that replaces HumanEval's `candidate` by the function's name."""

    def __init__(self, before: str, after: str) -> None:
        self.before, self.after = before, after

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.after if node.id == self.before else node.id, node.ctx)


def _called(asserts: Sequence[ast.Assert]) -> str:
    """Return the name of the only function that all asserts call, apart from Python's own, such as `set`."""
    called = [{_function(node) for node in ast.walk(test)} - {""} for test in asserts]
    common = set.intersection(*called) - {*dir(builtins), "isclose", "fabs"} if called else set()
    if len(common) != 1:
        raise Unreadable
    return common.pop()


def _of_assert(statement: ast.Assert, name: str) -> UnitTest:
    test, text = statement.test, ast.unparse(statement)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return UnitTest(f"bool({ast.unparse(test.operand)})", "False", text=text)
    if isinstance(test, ast.Compare):
        if len(test.ops) != 1:
            raise Unreadable
        left, operator, right = test.left, test.ops[0], test.comparators[0]
        if isinstance(operator, ast.Eq):
            return UnitTest(*_sides(left, right, name), text=text)
        if isinstance(operator, ast.Is) and isinstance(right, ast.Constant):
            return UnitTest(*_sides(left, right, name), text=text, identical=True)
        if isinstance(operator, BELOW) and isinstance(left, ast.Call) and _function(left) in ("abs", "fabs"):
            inside = left.args[0]
            if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Sub):
                within = float(ast.literal_eval(right))
                return UnitTest(*_sides(inside.left, inside.right, name), absolute=within, text=text)
        raise Unreadable
    if isinstance(test, ast.Call) and _function(test) == "isclose":
        left, right = test.args
        tolerances = {key.arg: float(ast.literal_eval(key.value)) for key in test.keywords}
        call, expected = _sides(left, right, name)
        return UnitTest(call, expected, tolerances.get("abs_tol", 0.0), tolerances.get("rel_tol", 1e-9), text)
    if isinstance(test, ast.Call):
        return UnitTest(f"bool({ast.unparse(test)})", "True", text=text)
    raise Unreadable


def _function(node: ast.AST) -> str:
    """Return the name of the function that a node calls, `isclose` for `math.isclose(…)`.

    The result is "" if the node calls no function.
    """
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "id", getattr(function, "attr", ""))


def _sides(left: ast.expr, right: ast.expr, name: str) -> tuple[str, str]:
    """Return (call, expected): the side of a test that mentions the function `name`, and the other side.

    Raises Unreadable if both sides mention it, or neither.
    """
    named = [any(getattr(node, "id", "") == name for node in ast.walk(side)) for side in (left, right)]
    if named[0] == named[1]:
        raise Unreadable
    call, expected = (left, right) if named[0] else (right, left)
    return ast.unparse(call), ast.unparse(expected)


def program(question: str, completion: str, name: str) -> str:
    """Return the program of a completion, as the module's docstring describes it."""
    text = completion.rpartition("</think>")[2]
    blocks = FENCE.findall(text) if len(text) <= LONGEST else []
    body = blocks[-1] if blocks else text
    defined = f"def {name}"
    return body if defined in body or defined not in question else f"{question.rstrip()}\n{body}"


@lru_cache(maxsize=4096)
def _expected(tests: UnitTests) -> tuple[Any, ...]:
    """Return the expected values (tests,).

    They are computed in the sandbox, because tests are trusted no more than programs.
    """
    if not tests.tests:
        return ()
    (result,) = run([Job(tests.setup, tuple(test.expected for test in tests.tests))])
    return result.values


def verdicts(problems: Sequence[Problem], completions: Sequence[str]) -> list[Verdicts]:
    """Return the verdicts on the tests of each completion; ([], []) for a problem without tests.

    Raises UserError without a sandbox.
    """
    return rollout(problems, completions)[0]


def rollout(problems: Sequence[Problem], completions: Sequence[str]) -> tuple[list[Verdicts], int]:
    """Return the `verdicts` (completions,), and how many programs ran out of time.

    All programs together have one budget of time, see `Pool.run`.
    """
    every, results = _run(problems, completions)
    judged = [
        _verdicts(problem.question, tests, result.values)
        for problem, tests, result in zip(problems, every, results, strict=True)
    ]
    return judged, sum(result.ended in UNFINISHED for result in results)


def feedback(problems: Sequence[Problem], completions: Sequence[str]) -> list[str]:
    """Return the first test that each program fails, with what the program gives: `assert f(2) == 4: 5`.

    In place of a value may stand the reason why there is none, such as `KeyError`. The words are "" for a
    program that fails no test.
    """
    words = []
    for tests, result in zip(*_run(problems, completions), strict=True):
        failures = (
            f"{test.text}: {value.why if isinstance(value, Failed) else SHORTLY.repr(value)}"
            for test, value, wanted in zip(tests.tests, result.values, _expected(tests), strict=True)
            if not _passes(test, value, wanted)
        )
        words.append(next(failures, ""))
    return words


def _run(problems: Sequence[Problem], completions: Sequence[str]) -> tuple[list[UnitTests], list[Result]]:
    """Return the tests of each problem, and the results of the completions' programs."""
    every = [read_tests(problem.answer) for problem in problems]
    jobs = [
        Job(
            f"{tests.setup}\n{program(problem.question, completion, tests.name)}",
            tuple(test.call for test in tests.tests),
        )
        for problem, completion, tests in zip(problems, completions, every, strict=True)
    ]
    return every, run(jobs)


def _verdicts(question: str, tests: UnitTests, values: Sequence[Any]) -> Verdicts:
    shown: list[bool] = []
    others: list[bool] = []
    asked = _letters(question)
    for test, value, wanted in zip(tests.tests, values, _expected(tests), strict=True):
        (shown if _letters(test.text) in asked else others).append(_passes(test, value, wanted))
    return shown, others


def _passes(test: UnitTest, value: Any, wanted: Any) -> bool:
    """Return whether the value of a test's call is the wanted one."""
    of_type = type(value) is type(wanted) or not test.identical
    return of_type and same(value, wanted, _tolerance(test, wanted))


def _tolerance(test: UnitTest, wanted: Any) -> float:
    """Return how far a value may be from `wanted`.

    The relative tolerance is left out if `wanted` is no number, or too large for a float.
    """
    try:
        return max(test.absolute, test.relative * abs(float(wanted)) if test.relative else 0.0)
    except (TypeError, ValueError, OverflowError):
        return test.absolute


def _letters(text: str) -> str:
    """Return the text without spaces, and with one kind of quotes, which `ast.unparse` may change."""
    return "".join(text.split()).replace('"', "'")
