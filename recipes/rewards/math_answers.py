"""Whether two mathematical answers are equal: by their normal forms, else by computer algebra.

An answer written by a model can make a computer algebra system work forever (`9^{9^{9^9}}`), in C code that
no signal handler interrupts. So the algebra runs in a child process whose time and memory are limited. The
limit is of the child's own CPU time, not of the clock, by which pebble's pools would stop it: a busy machine
changes no verdict. Both answers are read as LaTeX only: math-verify's reader of plain expressions evaluates
Python.
"""

import atexit
import json
import logging
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from recipes.rewards.answer_forms import Form, Group, Value, Word, form, letters
from recipes.worlds.final_answer import LONGEST

MEMORY = 4 << 30  # bytes of address space of the child
# of an answer; unreadable: neither right nor known to be wrong, because nothing could be made of it
Verdict = Literal["right", "wrong", "unreadable"]
MANY = 12  # parts of a list or set, beyond which their order counts

NUMERAL = re.compile(r"-?(?:\d+/0*[1-9]\d*|\d+(?:\.\d*)?|\.\d+)", re.ASCII)  # compared here, exactly

log = logging.getLogger(__name__)


class Comparer:
    """`comparer(gold, answer)`: whether they are equal. Never raises for any two texts.

    The child starts with the first comparison that needs it (about 2 s) and ends with this process. What it
    cannot finish within `limit` seconds of CPU, or within its memory, counts as not equal, is logged, and is
    counted in `unfinished`; `unread` counts what it could not read.
    """

    def __init__(self, limit: float = 5.0) -> None:
        self.limit = limit
        self.unfinished = 0
        self.unread = 0
        self.child: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def __call__(self, gold: str, answer: str) -> bool:
        return self.verdict(gold, answer) == "right"

    def verdict(self, gold: str, answer: str) -> Verdict:
        """What the answer is; `unreadable` if it is too long, or if it or a part could not be compared."""
        if max(len(gold), len(answer)) > LONGEST:
            return "unreadable"
        one, other = form(gold), form(answer)
        if one is None or other is None:
            return "unreadable"
        before = self.unfinished + self.unread
        if self._equal(one, other):
            return "right"
        return "wrong" if self.unfinished + self.unread == before else "unreadable"

    def close(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None

    def _equal(self, one: Form, other: Form) -> bool:
        """Whether the gold answer `one` and the answer `other` are equal."""
        if isinstance(one, Value) and isinstance(other, Value):
            return _same_unit(one.unit, other.unit) and self._same_value(one.text, other.text)
        if isinstance(one, Group) and isinstance(other, Group):
            same_size = one.kind == other.kind and len(one.parts) == len(other.parts)
            return same_size and self._same_parts(one, other)
        if isinstance(one, Word) and isinstance(other, Word) and one.text == other.text:
            return True
        if isinstance(one, Word) and one.number and _is_number(other):
            return self._equal(one.number, other)
        if isinstance(other, Word) and other.number and _is_number(one):
            return self._equal(one, other.number)
        self.unread += any(isinstance(form, Word) and form.foreign for form in (one, other))
        return False

    def _same_parts(self, one: Group, other: Group) -> bool:
        if one.ordered or len(one.parts) > MANY:
            return all(map(self._equal, one.parts, other.parts))
        left = list(other.parts)
        for part in one.parts:
            place = next((i for i, candidate in enumerate(left) if self._equal(part, candidate)), None)
            if place is None:
                return False
            del left[place]
        return True

    def _same_value(self, one: str, other: str) -> bool:
        if NUMERAL.fullmatch(one) and NUMERAL.fullmatch(other):
            return Fraction(one) == Fraction(other)
        return one == other or (letters(one) == letters(other) and self._ask(one, other))

    def _ask(self, one: str, other: str) -> bool:
        reply = self._exchange([one, other])
        self.unread += reply == b"null\n"
        if not reply:
            self.unfinished += 1
            log.warning(
                "not compared within %g s of CPU and %d MiB: %r, %r", self.limit, MEMORY >> 20, one, other
            )
        return reply == b"true\n"

    def _exchange(self, pair: Sequence[str]) -> bytes:
        """The child's next line; empty, and the child gone, when it has died over the pair."""
        if self.child is not None and self.child.poll() is not None:
            self.close()  # it died of something else, between two comparisons
        if self.child is None:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "recipes.rewards.math_answers", str(self.limit)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        try:
            self.child.stdin.write(json.dumps(pair).encode() + b"\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except OSError:
            line = b""
        if not line:
            self.close()
        return line


def _is_number(given: Form) -> bool:
    return isinstance(given, Value) and bool(NUMERAL.fullmatch(given.text))


def _same_unit(gold: str, answer: str) -> bool:
    """A unit may be left out by one side, but an answer in percent has another value than a plain gold one.

    A gold answer in percent tells what was asked for: 25 is right for 25%, as in MATH's own grader.
    """
    return gold == answer or not answer or (not gold and answer != "percent")


def _serve(limit: float) -> None:
    """The child: for each line `[one, other]` on stdin, `true`, `false` or `null` (unread) on stdout."""
    # only the child needs computer algebra, which takes seconds to import
    from math_verify import LatexExtractionConfig, parse

    logging.disable(logging.CRITICAL)  # math-verify logs each answer it cannot read

    def read(text: str) -> Any:
        found = parse(f"\\boxed{{{text}}}", [LatexExtractionConfig()], parsing_timeout=None)
        return found[0] if len(found) == 2 and not isinstance(found[0], str) else None

    _same(read("\\frac{1}{2}"), read("0.5"))  # what is loaded at the first use must not count
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        one, other = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, limit)  # kills this process; its parent starts another
        try:
            first, second = read(one), read(other)
            equal = None if first is None or second is None else _same(first, second)
        except MemoryError:
            sys.exit(1)
        except Exception:
            equal = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(equal), flush=True)


def _same(one: Any, other: Any) -> bool:
    """Whether two expressions or matrices are equal exactly, decimals read as the fractions they are."""
    # only the child needs computer algebra, which takes seconds to import
    from sympy import Basic, Float, I, MatrixBase, Rational, Symbol, nan, simplify, zoo

    if isinstance(one, MatrixBase) and isinstance(other, MatrixBase):
        return one.shape == other.shape and all(map(_same, one, other))
    if not isinstance(one, Basic) or not isinstance(other, Basic):
        return False
    if one.has(zoo, nan) or other.has(zoo, nan):
        return False  # what has no value is equal to its own text alone
    if one == other:
        return True

    def exact(expression: Any) -> Any:
        expression = expression.replace(lambda e: isinstance(e, Float), lambda e: Rational(str(e)))
        return expression.replace(lambda e: isinstance(e, Symbol) and e.name == "i", lambda e: I)

    try:
        first, second = exact(one), exact(other)
        return bool(first == second or simplify(first - second) == 0)
    except TypeError:
        return False  # a set, a relation or a truth value


if __name__ == "__main__":
    _serve(float(sys.argv[1]))
