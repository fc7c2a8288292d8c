"""The five words: what an interval says, at which level, and that word and interval cannot disagree."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics.sequential import levels
from analysis.verdicts.rule import WORDS, Asked, Decision, Sample, alpha_of, interval, judge, word_of
from encore.recipe.looks import LOOKS

MARGIN = 0.1


def asked(direction="higher", margin=MARGIN, matters=MARGIN, primary=True, claims=1, attempt=1) -> Asked:
    full = lambda value: np.full(claims, value)  # noqa: E731
    return Asked(full(direction), full(margin), full(matters), full(primary), full(alpha_of(attempt)))


def sample(*claims, error=0.0, by_median=False) -> Sample:
    x = np.array(claims, dtype=float)
    return Sample(x, np.full(x.shape[:-1], error), np.full(x.shape[:-1], by_median))


def decided(seeds, question: Asked, **options) -> Decision:
    """The decision about one claim from its seeds, taken look by look."""
    decision = None
    for look, n in enumerate(LOOKS):
        if n <= len(seeds):
            decision = judge(sample(seeds[:n], **options), question, look, decision)
    assert decision is not None
    return decision


def word(decision: Decision) -> str:
    return WORDS[int(decision.word.flat[0])]


def around(mean: float, n: int = 8, spread: float = 0.02) -> list[float]:
    return [mean + spread * (2 * (i % 2) - 1) for i in range(n)]


@pytest.mark.parametrize(
    ("mean", "said"),
    [(0.5, "shown"), (0.05, "shown, smaller"), (0.0, "equivalent"), (-0.05, "reversed"), (-0.5, "reversed")],
)
def test_each_word_and_its_mirror(mean, said):
    assert word(decided(around(mean), asked())) == said
    assert word(decided(around(-mean), asked("lower"))) == said
    assert word(decided(around(0.1, spread=0.5), asked())) == "open"


def test_equality_is_shown_or_reversed():
    assert word(decided(around(0.02), asked("equal"))) == "shown"
    assert word(decided(around(0.3), asked("equal"))) == "reversed"
    assert word(decided(around(-0.3), asked("equal"))) == "reversed"
    assert word(decided(around(0.1), asked("equal"))) == "open"


def test_an_effect_of_the_other_sign_is_not_a_smaller_one():
    """The old rule called -0.119, where more than 0.1 was claimed, weaker than claimed."""
    seeds = [-0.0175, -0.165, -0.0067, -0.211, -0.182, -0.052, -0.083, -0.238]
    decision = decided(seeds, asked(matters=0.02))
    assert word(decision) == "open"  # the sign is not certain after eight seeds
    assert word(decided(seeds * 2, asked(matters=0.02))) == "reversed"


def test_a_certain_loss_is_no_equivalence_however_small():
    """The old rule called a loss of 0.044 of all 16 seeds no difference."""
    seeds = np.random.default_rng(0).normal(-0.044, 0.02, 16)
    assert word(decided(seeds.tolist(), asked(margin=0.0, matters=0.1))) == "reversed"


def test_collapse_of_one_side_is_judged_by_the_median():
    """Three of sixteen rivals collapsed: every seed is positive, and the mean is of two kinds of run."""
    seeds = [0.3, 0.25, 0.35, 0.28, 0.31, 0.9, 0.27, 0.33] * 2
    decision = decided(seeds, asked(margin=0.0), by_median=True)
    assert word(decision) == "shown"
    assert 0.25 <= decision.low[0] <= np.median(seeds) <= decision.high[0] <= 0.9
    eight = decided(seeds[:8], asked(margin=0.0, claims=1), by_median=True)
    assert word(eight) == "open"  # the sign test's least p-value is 1/256
    assert (eight.low[0], eight.high[0]) == (-math.inf, math.inf)


def test_the_median_covers_as_it_says():
    rng = np.random.default_rng(1)
    x = rng.exponential(size=(20_000, 16)) - math.log(2)  # whose median is 0
    low, high = interval(Sample(x, np.zeros(len(x)), np.full(len(x), True)), 0.02)
    assert np.mean(low > 0) <= 0.02
    assert np.mean(high < 0) <= 0.02
    assert np.mean(low > 0) == pytest.approx(stats.binom.cdf(3, 16, 0.5), abs=0.003)


def test_the_interval_is_students_at_the_level_of_its_look_and_family():
    seeds = around(0.2, 16, 0.1)
    question = asked(claims=3)
    decision = judge(sample(seeds, around(0.0, 16), around(0.0, 16)), question, 1)
    level = levels(alpha_of(1) / 3 / 2)[1]
    t = stats.ttest_1samp(seeds, 0.0).confidence_interval(1 - 2 * level)
    assert (decision.low[0], decision.high[0]) == pytest.approx((t.low, t.high), rel=1e-4)


def test_a_shared_error_widens_and_is_not_averaged_away():
    few, many = (judge(sample(around(0.2, n), error=0.05), asked(), LOOKS.index(n)) for n in (8, 32))
    assert few.low[0] < decided(around(0.2), asked()).low[0]
    assert (many.high[0] - many.low[0]) / 2 > 0.05 * stats.norm.isf(0.02)


def test_one_number_counted_eight_times_decides_nothing():
    """The base of a record was measured once: eight equal differences, whose error they share."""
    assert word(decided([0.175] * 8, asked(margin=0.0, matters=0.02), error=0.06)) == "open"


def test_what_a_look_decides_is_frozen():
    seeds = [*around(0.5), *around(-0.5, 24, 0.3)]
    first, last = decided(seeds[:8], asked()), decided(seeds, asked())
    assert word(first) == word(last) == "shown"
    assert (last.low[0], last.high[0], last.look[0]) == (first.low[0], first.high[0], 0)


def test_a_later_attempt_has_less_of_alpha_and_all_attempts_have_it_together():
    assert sum(alpha_of(attempt) for attempt in range(1, 40)) == pytest.approx(0.05)
    first, second = (decided(around(0.2), asked(attempt=n)) for n in (1, 2))
    assert second.low[0] < first.low[0]


def test_without_numbers_a_claim_is_open_and_not_counted():
    nothing = [math.nan] * 8
    decision = judge(sample(nothing, around(0.2)), asked(claims=2), 0)
    assert WORDS[decision.word[0]] == "open"
    assert math.isnan(decision.low[0])
    alone = judge(sample(around(0.2)), asked(), 0)
    assert decision.low[1] == alone.low[0]


def by_loops(p: list[float], m: int, alpha: float) -> int:
    """How many claims Benjamini and Hochberg's rule decides."""
    return max((r for r in range(len(p) + 1) if sum(x <= alpha * r / m for x in p) >= r), default=0)


numbers = st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=16, max_size=16)


@given(
    st.lists(numbers, min_size=1, max_size=5),
    st.sampled_from(["higher", "lower", "equal"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.0, 0.03]),
)
def test_word_and_interval_cannot_disagree(claims, direction, primary, by_median, margin, error):
    margin = max(margin, 0.05) if direction == "equal" else margin
    question = asked(direction, margin, 0.2, primary, len(claims))
    decision = judge(sample(*claims, error=error, by_median=by_median), question, 1)
    assert np.array_equal(decision.word, word_of(decision.low, decision.high, question))
    assert np.all(decision.low <= decision.high)


@given(st.lists(numbers, min_size=1, max_size=6))
def test_secondary_claims_are_decided_by_benjamini_and_hochberg(claims):
    question = asked(primary=False, claims=len(claims))
    decision = judge(sample(*claims), question, 2)
    alone = asked(claims=1)  # a family of one: its alpha is the whole
    steps = [
        min((a for a in np.linspace(0.001, 0.05, 50) if _decides(x, alone, a)), default=1.0) for x in claims
    ]
    least = by_loops([p * 1.05 for p in steps], len(claims), alpha_of(1))
    most = by_loops([p - 0.0011 for p in steps], len(claims), alpha_of(1))
    assert least <= decision.decided.sum() <= most


def _decides(seeds: list[float], question: Asked, alpha: float) -> bool:
    low, high = interval(sample(seeds), np.array([levels(float(alpha) / 2)[2]]))
    return WORDS[int(word_of(low, high, question)[0])] != "open"
