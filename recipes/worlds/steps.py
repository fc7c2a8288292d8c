"""Reading steps: what the worlds' step verifiers share."""

import re
from collections.abc import Iterable, Iterator

LONGEST_STEP = 200  # characters; anything longer is not a step


def matches(step: re.Pattern[str], texts: Iterable[str]) -> Iterator[re.Match[str] | None]:
    """Each text that is not empty, read as a step; None where it is none."""
    for text in filter(None, texts):
        yield step.fullmatch(text) if len(text) <= LONGEST_STEP else None


def take(left: list[int], operands: Iterable[int]) -> tuple[list[int], int]:
    """What is left of the numbers without the operands, and how many of the operands were missing."""
    rest, missing = [*left], 0
    for number in operands:
        if number in rest:
            rest.remove(number)
        else:
            missing += 1
    return rest, missing
