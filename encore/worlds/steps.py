"""The reading of steps, common to the worlds' step verifiers."""

import re
from collections.abc import Iterable, Iterator

from encore.worlds.answers import scratchpad, scratchpad_start

LONGEST_STEP = 200  # characters; a longer text is not a step


def matches(step: re.Pattern[str], texts: Iterable[str]) -> Iterator[re.Match[str] | None]:
    """Match each non-empty text as a step; yield None for a text that is not a step."""
    for text in filter(None, texts):
        yield step.fullmatch(text) if len(text) <= LONGEST_STEP else None


def take(left: list[int], operands: Iterable[int]) -> tuple[list[int], int]:
    """Return the numbers of `left` without the operands, and how many of the operands were missing."""
    rest, missing = [*left], 0
    for number in operands:
        if number in rest:
            rest.remove(number)
        else:
            missing += 1
    return rest, missing


def texts(completion: str, separator: str) -> list[str]:
    """Return the steps of the scratchpad: its non-empty parts between matches of `separator`.

    Dots do not belong to a step.
    """
    return [text for text, _ in _parts(completion, separator)]


def ends(completion: str, separator: str) -> list[int]:
    """Return the offset in the completion just past each step; dots behind a step are not part of it."""
    return [end for _, end in _parts(completion, separator)]


def _parts(completion: str, separator: str) -> Iterator[tuple[str, int]]:
    """Yield each step of the scratchpad and the offset just past its last character."""
    body, start = scratchpad(completion), scratchpad_start(completion)
    places = [place for place, character in enumerate(body) if character != "."]
    text = "".join(body[place] for place in places)
    begin = 0
    cuts = [match.span() for match in re.finditer(separator, text)]
    for end, following in [*cuts, (len(text), 0)]:
        if end > begin:
            yield text[begin:end], start + places[end - 1] + 1
        begin = following
