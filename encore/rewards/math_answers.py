"""Whether two mathematical answers are equal: by their normal forms, else by computer algebra.

A rollout is judged with one budget of CPU time. First every answer gets a short time, which is enough for
most; then those that were not finished share what is left of the budget. So no answer, however long it takes,
takes time from another that is compared at once; and how much each gets depends on how many there are, not on
their order.
"""

import logging
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from encore.rewards.algebra import Algebra
from encore.rewards.answer_forms import Form, Group, Value, Word, form, letters
from encore.worlds.final_answer import LONGEST

LIMIT = 5.0  # seconds of CPU for an answer, at most
SHORT = 0.5  # seconds of CPU for an answer of a rollout, at first
BUDGET = 60.0  # seconds of CPU for all answers of a rollout that are not finished
# of an answer; unreadable: neither right nor known to be wrong, because nothing could be made of it
Verdict = Literal["right", "wrong", "unreadable"]
MANY = 12  # parts of a list or set, beyond which their order counts

NUMERAL = re.compile(r"-?(?:\d+/0*[1-9]\d*|\d+(?:\.\d*)?|\.\d+)", re.ASCII)  # compared here, exactly

log = logging.getLogger(__name__)


class Comparer:
    """`comparer(gold, answer)`: whether they are equal. Never raises for any two texts.

    An answer whose parts cannot be compared within `limit` seconds of CPU, or within the memory of a worker,
    counts as not equal, is logged, and is counted in `unfinished`.
    """

    def __init__(self, limit: float = LIMIT, budget: float = BUDGET) -> None:
        self.limit, self.budget = limit, budget
        self.unfinished = 0
        self.algebra = Algebra()
        self._left = 0.0  # seconds of CPU for the answer being judged; 0 once a part was not finished
        self._unread = False

    def __call__(self, gold: str, answer: str) -> bool:
        return self.verdict(gold, answer) == "right"

    def verdict(self, gold: str, answer: str) -> Verdict:
        """What the answer is; `unreadable` if it is too long, or if it or a part could not be compared."""
        return self._told(gold, answer, self._judged(gold, answer, self.limit), self.limit)

    def verdicts(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        """(pairs,) verdicts of the answers of a rollout, given as (gold, answer), within one budget."""
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
        """The verdict, `unreadable` of an answer that was not finished, which is counted and logged."""
        if verdict is None:
            self.unfinished += 1
            log.warning("not compared within %.3g s of CPU: %r, %r", seconds, gold, answer)
        return verdict or "unreadable"

    def _judged(self, gold: str, answer: str, seconds: float) -> Verdict | None:
        """The verdict; None if it was not finished within so much CPU time."""
        if max(len(gold), len(answer)) > LONGEST:
            return "unreadable"
        one, other = form(gold), form(answer)
        if one is None or other is None:
            return "unreadable"
        self._left, self._unread = seconds, False
        if self._equal(one, other):
            return "right"
        if self._left <= 0:
            return None
        return "unreadable" if self._unread else "wrong"

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
        self._unread |= any(isinstance(form, Word) and form.foreign for form in (one, other))
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
        if self._left <= 0:
            return False
        outcome, seconds = self.algebra(one, other, self._left)
        self._left = 0.0 if outcome == "unfinished" else self._left - seconds
        self._unread |= outcome == "unread"
        return outcome == "equal"


def _is_number(given: Form) -> bool:
    return isinstance(given, Value) and bool(NUMERAL.fullmatch(given.text))


def _same_unit(gold: str, answer: str) -> bool:
    """A unit may be left out by one side, but an answer in percent has another value than a plain gold one.

    A gold answer in percent tells what was asked for: 25 is right for 25%, as in MATH's own grader.
    """
    return gold == answer or not answer or (not gold and answer != "percent")
