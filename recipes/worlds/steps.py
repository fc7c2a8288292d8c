"""Reading steps: what the worlds' step verifiers share."""

from collections.abc import Iterable

LONGEST_STEP = 200  # characters; anything longer is not a step


def take(left: list[int], operands: Iterable[int]) -> tuple[list[int], int]:
    """What is left of the numbers without the operands, and how many of the operands were missing."""
    rest, missing = [*left], 0
    for number in operands:
        if number in rest:
            rest.remove(number)
        else:
            missing += 1
    return rest, missing
