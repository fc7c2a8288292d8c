"""Arithmetic as text (`+ - * /`, brackets and whole numbers), which is evaluated exactly."""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import add, mul, sub
from typing import Any

EXPRESSION = re.compile(r"[0-9+*/() -]{1,100}")
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul, "/": Fraction}
NODES: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
SUMS = ("+", "-")


@dataclass(frozen=True)
class Work:
    """An evaluated expression: its value, the numbers in it and the steps that lead to the value."""

    expression: str
    value: Any  # an int, or a Fraction if it is not whole
    numbers: tuple[int, ...]
    steps: tuple[str, ...] = ()
    sign: str = ""  # the last operator; "" for a single number


def combine(x: Work, sign: str, y: Work) -> Work:
    """Return the work of `x sign y`, with brackets where needed. Raises ZeroDivisionError for x / 0."""
    value = OPERATORS[sign](x.value, y.value)
    if isinstance(value, Fraction) and value.denominator == 1:
        value = value.numerator
    left = f"({x.expression})" if sign in ("*", "/") and x.sign in SUMS else x.expression
    inner = (sign in ("*", "-") and y.sign in SUMS) or (sign == "/" and y.sign)
    right = f"({y.expression})" if inner else y.expression
    steps = (*x.steps, *y.steps, f"{x.value}{sign}{y.value}={value}")
    return Work(left + sign + right, value, x.numbers + y.numbers, steps, sign)


def work_out(expression: str) -> Work | None:
    """Evaluate an expression. Returns None for other text, a division by 0, or over 100 characters."""
    if not EXPRESSION.fullmatch(expression):
        return None
    try:
        return _work(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _work(node: ast.expr) -> Work:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Work(str(node.value), node.value, (node.value,))
    if isinstance(node, ast.BinOp) and type(node.op) in NODES:
        return combine(_work(node.left), NODES[type(node.op)], _work(node.right))
    raise ValueError("neither a number nor one of + - * /")


def makes(work: Work | None, numbers: Sequence[int], target: int) -> bool:
    """Return whether an expression has the value `target` and uses each of the numbers once."""
    return work is not None and work.value == target and sorted(work.numbers) == sorted(numbers)


def reach(numbers: Sequence[int], target: int) -> Work | None:
    """Return an expression of all these numbers that has the value `target`; None if there is none.

    It tries every expression, which takes a few milliseconds for four numbers, and minutes for six.
    """
    return _reach([Work(str(number), number, (number,)) for number in numbers], target)


def _reach(parts: list[Work], target: int) -> Work | None:
    if len(parts) == 1:
        return parts[0] if parts[0].value == target else None
    for i, x in enumerate(parts):
        for j, y in enumerate(parts):
            if i == j:
                continue
            rest = [part for k, part in enumerate(parts) if k not in (i, j)]
            for sign, operator in OPERATORS.items():
                if (sign in ("+", "*") and i > j) or (sign == "/" and not y.value):
                    continue
                if not rest and operator(x.value, y.value) != target:
                    continue  # skipped before its text is made, which takes most of the time
                if work := _reach([*rest, combine(x, sign, y)], target):
                    return work
    return None
