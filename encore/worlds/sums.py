"""Sums of signed whole numbers as texts, and their steps, added correctly or with slips."""

import random
import re
from collections.abc import Callable, Iterator
from itertools import repeat

Adder = Callable[[tuple[int, ...]], int]  # operands -> their sum, or a slip near it

NUMBER = re.compile(r"[+-]?[0-9]+")
STEP = re.compile(r"(-?[0-9]{1,12}(?:[+-][0-9]{1,12})+)=(-?[0-9]{1,12})")


def operands_of(expression: str) -> tuple[int, ...]:
    """Return the signed terms of `3-5+7` (a trailing `=` is ignored): (3, -5, 7)."""
    return tuple(int(number) for number in NUMBER.findall(expression))


def expression(operands: tuple[int, ...]) -> str:
    return str(operands[0]) + "".join(f"{term:+d}" for term in operands[1:])


def slip(total: int, rng: random.Random) -> int:
    """Return a plausible wrong result: off by one or ten, and of the same sign."""
    return rng.choice([total + d for d in (-10, -1, 1, 10) if (total + d >= 0) == (total >= 0)])


def adder(faults: Iterator[bool], rng: random.Random) -> Adder:
    """Return a function that sums operands; its n-th sum is a slip if the n-th of `faults` is true."""
    return lambda operands: slip(sum(operands), rng) if next(faults) else sum(operands)


def careless(error: float, rng: random.Random) -> Adder:
    """Return a function that sums operands, each time with a slip at probability `error`."""
    return adder((rng.random() < error for _ in repeat(None)), rng)


def passes_ten(operands: tuple[int, ...]) -> bool:
    """Return whether the last digits add up to ten or more; False if an operand is negative."""
    return min(operands) >= 0 and sum(operand % 10 for operand in operands) >= 10


def losing(lost: float, add: Adder, rng: random.Random) -> Adder:
    """Return an adder that adds as `add` does, and loses one of a sum past a ten at chance `lost`."""
    # without the dial no random number is drawn
    return lambda operands: add(operands) - (lost > 0 and passes_ten(operands) and rng.random() < lost)


def left_to_right(terms: tuple[int, ...], add: Adder, group: int = 1) -> tuple[list[str], int]:
    """Return the steps, such as `3+5=8`, that each add `group` further terms, and the last result."""
    steps, total = [], terms[0]
    for i in range(1, len(terms), group):
        operands = (total, *terms[i : i + group])
        total = add(operands)
        steps.append(f"{expression(operands)}={total}")
    return steps, total
