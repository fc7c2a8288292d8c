"""The rule that turns the differences of a claim's seeds into one of five words, by their interval.

A claim says that d = `of` - `against` is above a margin m >= 0 (`higher`), below -m (`lower`), or within m of
0 (`equal`). A smallest effect s says which differences would matter. The position of d's interval decides;
for `higher`, and with the signs turned for `lower`:

    shown             d > m, and d is not surely below s
    shown, smaller    d > 0, and d is surely below what was claimed, m, or what would matter, s
    equivalent        |d| < s on both sides, and neither direction is shown
    reversed          d < 0, however small; for `equal`: |d| > m
    open              none of these

The level of the interval allows for several looks and several claims. Each side spends half of alpha over the
planned looks (statistics.sequential). The primary claims of a recipe share alpha equally, so that with 95%
probability all of their intervals, at all looks, contain the truth. The intervals of secondary claims have a
false coverage rate of alpha (Benjamini & Yekutieli 2005, JASA 100:71): when R of m are decided, their level
belongs to alpha R / m. Another attempt to show a claim, in a changed world, has a smaller part of alpha
(`alpha_of`). A claim that a look decides is frozen there: later seeds change neither its word nor its
interval.

If runs of one side alone collapse, the mean is over two kinds of run. The interval is then an interval of the
median difference, by the exact sign test. If differences are bounds on one side, the other side of the
interval is infinite.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import stdtr, stdtrit

from analysis.statistics.sequential import nominal, spent

SHOWN, SMALLER, EQUIVALENT, REVERSED, OPEN = WORDS = (
    "shown",
    "shown, smaller",
    "equivalent",
    "reversed",
    "open",
)
ALPHA = 0.05  # alpha for all attempts at the primary claims of a recipe, or at its secondary ones
# share of alpha for the first attempt; each further attempt has a fifth of the attempt before
FIRST_ATTEMPT = 0.8


def alpha_of(attempt: int) -> float:
    """Return the part of alpha for an attempt, counted from 1; all attempts together have ALPHA."""
    return ALPHA * FIRST_ATTEMPT * (1 - FIRST_ATTEMPT) ** (attempt - 1)


@dataclass(frozen=True)
class Asked:
    """The parameters of a recipe's claims; each field is an array (claims,)."""

    direction: np.ndarray  # "higher", "lower" or "equal"
    margin: np.ndarray
    smallest_effect: np.ndarray
    primary: np.ndarray  # whether the claim is a primary one
    alpha: np.ndarray


@dataclass(frozen=True)
class Sample:
    """The differences of claims (..., claims, seeds) at a look; nan if a seed has no number."""

    differences: np.ndarray
    # (..., claims) the standard error that all differences share, because all have the same run on one side
    error: np.ndarray
    by_median: np.ndarray  # (..., claims) whether runs of only one side have collapsed
    at_least: ArrayLike = False  # (..., claims) whether some true differences may be larger
    at_most: ArrayLike = False  # (..., claims) whether some true differences may be smaller


@dataclass(frozen=True)
class Decision:
    """The verdicts on claims, as indices of WORDS, and the intervals behind them; arrays (..., claims)."""

    word: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: np.ndarray  # confidence level: the probability that an interval contains the truth
    look: np.ndarray  # index of LOOKS at which the claim was decided, or last looked at

    @property
    def decided(self) -> np.ndarray:
        return self.word != WORDS.index(OPEN)


def _tail_above(sample: Sample, bound: ArrayLike) -> np.ndarray:
    """Return one-sided p-values (..., claims) for "d is above the bound"; nan for fewer than two differences.

    The test is a paired t test whose variance of the mean is s^2 / n + error^2, or the sign test of the
    median. If all differences are equal and share no error, the p-value is the limit of the t test: 0 or 1.
    If true differences may be smaller than the sample's, the p-value is 1.
    """
    x, edge = sample.differences, np.broadcast_to(bound, sample.error.shape)
    n = (~np.isnan(x)).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, deviation = _moments(x)
        by_mean = stdtr(n - 1, -(mean - edge) / np.hypot(deviation / np.sqrt(n), sample.error))
    certain = (deviation <= 1e-12 * np.abs(mean)) & (sample.error == 0)
    limit = np.where((mean > edge) & ~np.isclose(mean, edge, rtol=1e-9, atol=0.0), 0.0, 1.0)
    by_mean = np.where(certain, limit, by_mean)
    by_sign = stats.binom.sf((x > edge[..., None]).sum(axis=-1) - 1, n, 0.5)
    known = np.where(sample.by_median, by_sign, by_mean)
    return np.where(n < 2, np.nan, np.where(sample.at_most, 1.0, known))


def _tail_within(sample: Sample, bound: np.ndarray) -> np.ndarray:
    """Return p-values (..., claims) for "|d| is below the bound", by two one-sided tests."""
    every = np.ones(bound.shape, bool)
    return np.maximum(_tail_above(sample, -bound), _tail_above(_turned(sample, every), -bound))


def tost(differences: Sequence[float], bound: float) -> float:
    """Return the p-value for "the mean lies within `bound` of 0", by two one-sided t tests.

    It is nan for fewer than two differences. Over several looks, compare the p-value with the level of each
    look (statistics.sequential).
    """
    one_claim = Sample(np.array([differences], dtype=float), np.zeros(1), np.zeros(1, bool))
    return float(_tail_within(one_claim, np.array([bound]))[0])


def interval(sample: Sample, tail: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends (..., claims) of intervals whose sides each miss the truth with probability `tail`."""
    x, tail = sample.differences, np.asarray(tail, dtype=float)
    n = (~np.isnan(x)).sum(axis=-1)
    mean, deviation = _moments(x)
    half = -stdtrit(np.maximum(n - 1, 1), tail) * np.hypot(
        deviation / np.sqrt(np.maximum(n, 1)), sample.error
    )
    ordered = np.sort(x, axis=-1)  # nan come last
    # the largest rank below which the truth lies with at most this probability
    rank = stats.binom.ppf(tail, n, 0.5) - 1
    rank = np.where(stats.binom.cdf(rank + 1, n, 0.5) <= tail, rank + 1, rank).astype(int)
    ends = np.clip(np.stack([rank, n - 1 - rank], axis=-1), 0, x.shape[-1] - 1)  # (..., claims, 2)
    low, high = np.moveaxis(np.take_along_axis(ordered, ends, axis=-1), -1, 0)
    low, high = np.where(rank < 0, -np.inf, low), np.where(rank < 0, np.inf, high)
    low, high = np.where(sample.by_median, [low, high], [mean - half, mean + half])
    return np.where(sample.at_most, -np.inf, low), np.where(sample.at_least, np.inf, high)


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and the standard deviations (..., claims) of differences (..., claims, seeds)."""
    n = (~np.isnan(x)).sum(axis=-1)
    mean = np.nansum(x, axis=-1) / np.maximum(n, 1)
    squares = np.nansum((x - mean[..., None]) ** 2, axis=-1)
    return mean, np.sqrt(squares / np.maximum(n - 1, 1))


def word_of(low: np.ndarray, high: np.ndarray, asked: Asked) -> np.ndarray:
    """Return the verdicts (..., claims), as indices of WORDS, for intervals from `low` to `high`.

    The table of this module has the rules.
    """
    down, equal = asked.direction == "lower", asked.direction == "equal"
    low, high = np.where(down, -high, low), np.where(down, -low, high)
    m, s = asked.margin, asked.smallest_effect
    within, beyond = (-m < low) & (high < m), (low > m) | (high < -m)
    rules = [
        (equal & within, SHOWN),
        (equal & beyond, REVERSED),
        (equal, OPEN),
        (high < 0, REVERSED),
        ((low > 0) & (high < np.maximum(m, s)), SMALLER),
        (low > m, SHOWN),
        ((-s < low) & (high < s), EQUIVALENT),
    ]
    holds, words = [rule for rule, _ in rules], [WORDS.index(word) for _, word in rules]
    word: np.ndarray = np.select(holds, words, WORDS.index(OPEN))
    return word


def _tail_to_decide(sample: Sample, asked: Asked) -> np.ndarray:
    """Return the smallest error probability of a side (..., claims) at which the interval decides a claim."""
    down = asked.direction == "lower"

    def above(bound: np.ndarray) -> np.ndarray:
        return _tail_above(_turned(sample, down), bound)

    def below(bound: np.ndarray) -> np.ndarray:
        return _tail_above(_turned(sample, ~down), -bound)

    m, s, zero = asked.margin, asked.smallest_effect, np.zeros(len(asked.margin))
    of_direction = [above(m), np.maximum(above(zero), below(np.maximum(m, s))), below(zero)]
    of_direction.append(_tail_within(sample, s))
    of_equality = [_tail_within(sample, m), above(m), below(-m)]
    equal = np.isin(asked.direction, "equal")
    least: np.ndarray = np.minimum.reduce(of_direction)
    least[..., equal] = np.minimum.reduce(of_equality)[..., equal]
    return least


def _turned(sample: Sample, turned: np.ndarray) -> Sample:
    """Return the sample with the signs of differences turned for the claims that `turned` (claims,) marks."""
    return replace(
        sample,
        differences=np.where(turned[:, None], -1.0, 1.0) * sample.differences,
        at_least=np.where(turned, sample.at_most, sample.at_least),
        at_most=np.where(turned, sample.at_least, sample.at_most),
    )


def judge(
    sample: Sample,
    asked: Asked,
    look: int,
    before: Decision | None = None,
    unchanged: ArrayLike = False,
) -> Decision:
    """Return the decisions at `look`, an index of LOOKS; `before` has the decisions of the previous look.

    A claim with fewer than two differences is open, with an interval of nan. `unchanged` (claims,) marks the
    claims without a new difference since the previous look. They stay as they were: the looser level of a
    later look is for new seeds alone.
    """
    # (..., claims) the smallest alpha with which the claim would be decided
    needed = 2 * spent(_tail_to_decide(sample, asked), look)
    tested = ~np.isnan(needed)
    decided = np.zeros(needed.shape, bool) if before is None else before.decided
    frozen = decided | unchanged
    needed = np.where(decided, 0.0, np.where(frozen & tested, np.inf, needed))
    tail = nominal(_alphas(needed, asked) / 2, look)
    low, high = interval(sample, tail)
    word = np.where(tested, word_of(low, high, asked), WORDS.index(OPEN))
    low, high = np.where(tested, [low, high], np.nan)
    made = Decision(word, low, high, 1 - 2 * tail, np.full(word.shape, look))
    if before is None:
        return made
    return Decision(
        word=np.where(frozen, before.word, made.word),
        low=np.where(frozen, before.low, made.low),
        high=np.where(frozen, before.high, made.high),
        level=np.where(frozen, before.level, made.level),
        look=np.where(frozen, before.look, made.look),
    )


def _alphas(needed: np.ndarray, asked: Asked) -> np.ndarray:
    """Return the alpha (..., claims) of each claim's interval; `needed` is the alpha that would decide it.

    Primary claims share alpha equally. Of m secondary claims, the R that are decided have alpha R / m. Those
    that stay open have alpha (R + 1) / m, at which one more claim would be decided.
    """
    tested = ~np.isnan(needed)
    primary = np.maximum((tested & asked.primary).sum(axis=-1, keepdims=True), 1)
    # the needed alpha, as a share of all alpha
    relative = np.where(tested & ~asked.primary, needed / asked.alpha, np.inf)
    m = np.maximum((tested & ~asked.primary).sum(axis=-1, keepdims=True), 1)
    ranks = np.arange(1, relative.shape[-1] + 1)
    rejected = ((np.sort(relative, axis=-1) <= ranks / m) * ranks).max(axis=-1, keepdims=True)  # (..., 1)
    share = np.where(relative <= rejected / m, rejected, np.minimum(rejected + 1, m)) / m
    return asked.alpha * np.where(asked.primary, 1 / primary, share)
