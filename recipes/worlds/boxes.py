r"""Answers in a box, `\boxed{…}`, as mathematical solutions state them. Linear time; never raises."""

import re

LONGEST = 500  # characters of an answer; a longer one is none
BOX = re.compile(r"\\f?boxed\s{0,3}\{")


def boxes(text: str) -> list[str] | None:
    r"""The contents of all outermost `\boxed{…}`; None if one is not closed, or longer than an answer."""
    contents, start = [], 0
    while match := BOX.search(text, start):
        depth = 1
        for place in range(match.end(), min(len(text), match.end() + LONGEST + 1)):
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if depth == 0:
                break
        else:
            return None
        contents.append(text[match.end() : place].strip())
        start = place + 1
    return contents


def last_box(text: str) -> str | None:
    r"""The content of the last `\boxed{…}` of a reference solution; None without one, or if it is open."""
    start = max((match.start() for match in BOX.finditer(text)), default=len(text))
    contents = boxes(text[start:])
    return contents[-1] if contents else None
