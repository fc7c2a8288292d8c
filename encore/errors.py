"""The error for mistakes in a user's input, which the user sees as one line for each mistake."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class UserError(Exception):
    """A mistake in a recipe, a command line or a checkpoint; the text is all that the user sees.

    If it stands for several mistakes of a recipe, each has a line.
    """

    @property
    def lines(self) -> list[str]:
        return str(self).split("\n")


class Mistakes:
    """The mistakes that several checks find. Each check runs in `with mistakes.gather(): …`.

    In the end `tell()` raises one UserError with all mistakes, if there are any.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Note a UserError that the `with` block raises, and go on after the block.

        The same mistake in several arms or scales is noted once.
        """
        try:
            yield
        except UserError as error:
            for line in error.lines:
                self.note(line)

    @contextmanager
    def gather_further(self) -> Iterator[None]:
        """Note a UserError as `gather` does; if mistakes are noted already, also ignore any other error.

        An error that is not a UserError may be a consequence of the mistakes noted before.
        """
        try:
            with self.gather():
                yield
        except Exception:
            if not self.lines:
                raise

    def note(self, line: str) -> None:
        if _anywhere(line) not in map(_anywhere, self.lines):
            self.lines.append(line)

    def tell(self) -> None:
        if self.lines:
            raise UserError("\n".join(self.lines))


def _anywhere(line: str) -> str:
    """Return a mistake's line without the scale and arm where the mistake was found."""
    return re.sub(r" ?\(scale [^()]*\)", "", line)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, to quote in our message; its class if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def whole(error: BaseException, longest: int = 300) -> str:
    """Return the text of an error joined into one line of at most `longest` characters.

    It is for errors whose first line alone says nothing. Returns the error's class if it has no text.
    """
    return " ".join(str(error).split())[:longest] or type(error).__name__


def nearest(word: object, known: list[str]) -> str:
    """Return the end of an error message: `; did you mean "x"?`, or else the list of `known` words."""
    match = get_close_matches(str(word), known, n=1, cutoff=0.5)
    return f'; did you mean "{match[0]}"?' if match else f"; valid: {', '.join(sorted(known))}"


def known(path: str, names: Iterable[str], valid: list[str], what: str, as_key: bool = False) -> None:
    for name in names:
        if name not in valid:
            place = f"{path}.{name}: unknown {what}" if as_key else f'{path}: unknown {what} "{name}"'
            raise UserError(place + nearest(name, valid))
