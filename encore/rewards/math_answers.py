"""Equality of two mathematical answers: by their normal forms, else by computer algebra.

A rollout is judged with one budget of CPU time. First every answer gets a short time, which is enough for
most. Then the unfinished answers share the rest of the budget. So no answer, however long it takes, takes
time from an answer that is compared at once; and each answer's share depends on the number of unfinished
answers, not on their order.
"""

import logging
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from encore.rewards.algebra import Algebra
from encore.rewards.answer_forms import Form, Group, Value, Word, form, letters
from encore.worlds.final_answer import LONGEST

LIMIT = 5.0  # largest number of CPU seconds for an answer
SHORT = 0.5  # seconds of CPU for each answer of a rollout in the first pass
BUDGET = 60.0  # seconds of CPU for all unfinished answers of a rollout
# verdict on an answer; unreadable: the answer could not be understood, so it is not known to be wrong
Verdict = Literal["right", "wrong", "unreadable"]
MANY = 12  # parts of a list or set; above this number their order counts

# numbers that are compared here, exactly
NUMERAL = re.compile(r"-?(?:\d+/0*[1-9]\d*|\d+(?:\.\d*)?|\.\d+)", re.ASCII)

log = logging.getLogger(__name__)


class Comparer:
    """A comparer: `comparer(gold, answer)` returns whether the two answers are equal. It never raises.

    An answer whose parts cannot be compared within `limit` seconds of CPU, or within the memory of a worker,
    counts as not equal, is logged, and is counted in `unfinished`.
    """

    def __init__(self, limit: float = LIMIT, budget: float = BUDGET) -> None:
        self.limit, self.budget = limit, budget
        self.unfinished = 0
        self.algebra = Algebra()
        self._left = 0.0  # seconds of CPU left for the present answer; 0 after an unfinished part
        self._unread = False

    def __call__(self, gold: str, answer: str) -> bool:
        return self.verdict(gold, answer) == "right"

    def verdict(self, gold: str, answer: str) -> Verdict:
        """Return the verdict; `unreadable` if the answer is too long or cannot be compared."""
        return self._told(gold, answer, self._judged(gold, answer, self.limit), self.limit)

    def verdicts(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        """Return the verdicts (pairs,) on a rollout's pairs (gold, answer), within one budget of CPU time."""
        distinct = [*dict.fromkeys(pairs)]
        short = min(SHORT, self.limit, self.budget / max(len(distinct), 1))
        judged = {pair: self._judged(*pair, short) for pair in distinct}
        cut = [pair for pair, verdict in judged.items() if verdict is None]
        share = min(self.limit, self.budget / len(cut) - short) if cut else 0.0
        if share > short:
            judged |= {pair: self._judged(*pair, share) for pair in cut}
        told = {pair: self._told(*pair, verdict, max(share, short)) for pair, verdict in judged.items()}
        return [told[pair] for pair in pairs]

    def close(self) -> None:
        self.algebra.close()

    def _told(self, gold: str, answer: str, verdict: Verdict | None, seconds: float) -> Verdict:
        """Return the verdict; an unfinished answer is `unreadable`, counted and logged."""
        if verdict is None:
            self.unfinished += 1
            log.warning("not compared within %.3g s of CPU: %r, %r", seconds, gold, answer)
        return verdict or "unreadable"

    def _judged(self, gold: str, answer: str, seconds: float) -> Verdict | None:
        """Return the verdict; None if it was not finished within `seconds` of CPU time."""
        if max(len(gold), len(answer)) > LONGEST:
            return "unreadable"
        expected, other = form(gold), form(answer)
        if expected is None or other is None:
            return "unreadable"
        self._left, self._unread = seconds, False
        if self._equal(expected, other):
            return "right"
        if self._left <= 0:
            return None
        return "unreadable" if self._unread else "wrong"

    def _equal(self, gold: Form, other: Form) -> bool:
        """Return whether the forms of the gold answer and of the answer are equal."""
        if isinstance(gold, Value) and isinstance(other, Value):
            return _same_unit(gold.unit, other.unit) and self._same_value(gold.text, other.text)
        if isinstance(gold, Group) and isinstance(other, Group):
            same_size = gold.kind == other.kind and len(gold.parts) == len(other.parts)
            return same_size and self._same_parts(gold, other)
        if isinstance(gold, Word) and isinstance(other, Word) and gold.text == other.text:
            return True
        if isinstance(gold, Word) and gold.number and _is_number(other):
            return self._equal(gold.number, other)
        if isinstance(other, Word) and other.number and _is_number(gold):
            return self._equal(gold, other.number)
        self._unread |= any(isinstance(form, Word) and form.foreign for form in (gold, other))
        return False

    def _same_parts(self, gold: Group, other: Group) -> bool:
        if gold.ordered or len(gold.parts) > MANY:
            return all(map(self._equal, gold.parts, other.parts))
        left = list(other.parts)
        for part in gold.parts:
            place = next((i for i, candidate in enumerate(left) if self._equal(part, candidate)), None)
            if place is None:
                return False
            del left[place]
        return True

    def _same_value(self, gold: str, other: str) -> bool:
        if NUMERAL.fullmatch(gold) and NUMERAL.fullmatch(other):
            return Fraction(gold) == Fraction(other)
        return gold == other or (letters(gold) == letters(other) and self._ask(gold, other))

    def _ask(self, gold: str, other: str) -> bool:
        if self._left <= 0:
            return False
        outcome, seconds = self.algebra(gold, other, self._left)
        self._left = 0.0 if outcome == "unfinished" else self._left - seconds
        self._unread |= outcome == "unread"
        return outcome == "equal"


def _is_number(form_of_answer: Form) -> bool:
    return isinstance(form_of_answer, Value) and bool(NUMERAL.fullmatch(form_of_answer.text))


def _same_unit(gold: str, answer: str) -> bool:
    """Return whether the units of two answers agree. One side may leave out its unit, unless it is percent.

    A gold answer in percent says what was asked for: 25 is right for 25%, as in MATH's own grader.
    """
    return gold == answer or not answer or (not gold and answer != "percent")
