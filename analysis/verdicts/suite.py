"""The expected number of false findings among all shown ones, and the probability that any is false.

Both follow from the rule alone (verdicts.rule), and are bounds for any number of records. The primary claims
of a record are all right, except with the probability alpha of their attempts. Of its secondary claims that
are decided, a share alpha is expected to be wrong. The probability of any false finding assumes that records,
and their secondary claims, err independently.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.verdicts.claims import Verdict
from analysis.verdicts.rule import SHOWN, SMALLER, alpha_of


@dataclass(frozen=True)
class Expected:
    """The expected errors, by the rule, among the shown claims of all records."""

    shown: int
    false: float  # largest expected number of false claims among them
    any_false: float  # probability that at least one is false

    def __str__(self) -> str:
        """Return the expectation in one sentence for readers."""
        return (
            f"Of the {self.shown} claims that are shown here, at most {self.false:.1f} are expected to be "
            f"false by chance; the chance that at least one of them is, is at most {self.any_false:.0%}."
        )


def expected(records: Iterable[Sequence[Verdict]]) -> Expected:
    """Return the expected errors among the shown findings of records, from the findings of each record.

    A sanity check of the code is no finding: it says nothing about a paper.
    """
    count, chances = 0, []
    for verdicts in records:
        shown = [v for v in verdicts if v.word in (SHOWN, SMALLER)]
        count += len(shown)
        if any(v.family == "primary" for v in shown):
            family = [v for v in verdicts if v.family == "primary" and v.n]
            chances.append(sum(alpha_of(v.attempt) for v in family) / len(family))
        chances += [alpha_of(v.attempt) for v in shown if v.family == "secondary"]
    return Expected(count, sum(chances), 1 - math.prod(1 - chance for chance in chances))
