"""Values that come out of the sandbox: data of Python's built-in types, read without trusting the sender."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

LONGEST = 200  # characters of the reason for which a value is missing


@dataclass(frozen=True)
class Failed:
    """A missing value, with the reason, such as `KeyError`. For `same` it equals no value."""

    why: str


def tokenizable(text: str) -> str:
    """Return a text with a question mark for each lone surrogate, which no tokenizer takes."""
    return text.encode(errors="replace").decode()


def read_values(lines: str, calls: int) -> tuple[Any, ...]:
    """Return the values (calls,) from the lines that inside.py sent; `Failed` for a missing or broken value.

    Never raises.
    """
    values = [_value(line) for line in lines.split("\n")[:calls] if line]
    return (*values, *[Failed("no value")] * (calls - len(values)))


def same(value: Any, expected: Any, tolerance: float = 0.0) -> bool:
    """Return whether a value equals the expected value, as by ==; numbers may differ by `tolerance`.

    Never raises.
    """
    if isinstance(value, Failed):
        return False
    try:
        if tolerance and isinstance(value, int | float) and isinstance(expected, int | float):
            return not isnan(value) and abs(value - expected) <= tolerance
        return bool(value == expected)
    except (RecursionError, OverflowError):
        return False


def _value(line: str) -> Any:
    try:
        return _decoded(json.loads(line))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, MemoryError, OverflowError):
        return Failed("no value")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "error":
        return Failed(tokenizable(str(held)[:LONGEST]))  # a forged line may hold any text
    return READERS[kind](held)


def _items(held: Sequence[Any]) -> list[Any]:
    items = [_decoded(item) for item in held]
    if any(isinstance(item, Failed) for item in items):
        raise ValueError("an error inside a value")
    return items


READERS = {
    "float": float,
    "complex": lambda held: complex(float(held[0]), float(held[1])),
    "bytes": bytes.fromhex,
    "tuple": lambda held: tuple(_items(held)),
    "set": lambda held: set(_items(held)),
    "dict": lambda held: dict(_items(pair) for pair in held),
}
