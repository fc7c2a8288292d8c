"""The expected number of false findings among all shown ones, and the probability that any of them is false.

Both are upper bounds that follow from the rule alone (verdicts.rule). With probability 1 - alpha, all primary
claims of a record are judged rightly; alpha depends on the attempt. Of the secondary claims that are decided,
a share alpha is expected to be judged wrongly. The probability of any false finding assumes that records, and
secondary claims within a record, err independently.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.verdicts.claims import Verdict
from analysis.verdicts.rule import SHOWN, SMALLER, alpha_of


@dataclass(frozen=True)
class Expected:
    """The expected number of false claims among the shown claims of all records, by the rule."""

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
    """Return the expected errors among the shown findings; `records` has the verdicts of each record.

    The verdicts must be without sanity checks of the code, which say nothing about a paper.
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
