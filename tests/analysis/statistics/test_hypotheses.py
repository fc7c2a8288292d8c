"""Tests of claims against margins, and Holm's correction, against other ways to compute them."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics.hypotheses import above, below, benjamini_hochberg, holm, p_claim, p_opposite

number = st.floats(-5, 5).map(lambda x: round(x, 3))
values = st.lists(number, min_size=2, max_size=8)
margin = st.floats(0, 3).map(lambda x: round(x, 3))
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def closed(p: list[float]) -> list[float]:
    """Holm as closed testing: a claim counts when Bonferroni rejects every set of claims that it is in."""
    sets = [s for size in range(1, len(p) + 1) for s in combinations(range(len(p)), size)]
    local = {s: min(1.0, len(s) * min(p[i] for i in s)) for s in sets}
    return [max(value for s, value in local.items() if i in s) for i in range(len(p))]


@given(p_values)
@settings(max_examples=60)
def test_holm_is_closed_testing(p):
    assert holm(p) == pytest.approx(closed(p))


def test_holm_by_hand():
    assert holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx([0.03, 0.06, math.nan, 0.06], nan_ok=True)
    assert holm([]).size == 0


@given(p_values)
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p):
    adjusted = holm(p)
    assert all(a >= b for a, b in zip(adjusted, p, strict=True))
    by_p = [adjusted[i] for i in np.argsort(p, kind="stable")]
    assert by_p == sorted(by_p)


@given(p_values, st.floats(0, 1))
def test_one_more_claim_never_makes_the_others_easier(p, other):
    assert all(a >= b for a, b in zip(holm([*p, other]), holm(p), strict=False))


@given(p_values, st.integers(0, 6))
def test_an_untested_claim_changes_no_other(p, at):
    with_a_gap = [*p[:at], math.nan, *p[at:]]
    for correct in (holm, benjamini_hochberg):
        corrected = correct(with_a_gap).tolist()
        assert math.isnan(corrected.pop(min(at, len(p))))
        assert corrected == pytest.approx(correct(p))
        assert correct([with_a_gap, with_a_gap])[1] == pytest.approx(correct(with_a_gap), nan_ok=True)


def test_benjamini_and_hochberg_by_hand():
    """0.01 * 3 / 1, 0.03 * 3 / 2, 0.04 * 3 / 3, each no more than the next."""
    assert benjamini_hochberg([0.04, 0.01, 0.03]) == pytest.approx([0.04, 0.03, 0.04])
    assert benjamini_hochberg([]).size == 0


def test_holm_errs_in_one_family_of_twenty():
    """Ten claims, seven of them at their boundary; half of the noise is shared, as by one base model."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        d = rng.normal(size=(10, 5)) + rng.normal(size=5)
        d[7:] += 5.0
        wrong += bool((holm(p_claim(d, "higher", 0.0))[:7] < 0.05).any())
    assert wrong / 400 <= 0.08


@given(values.filter(lambda x: np.ptp(x) > 0.01), number)
@settings(max_examples=40)
def test_one_sided_tests_are_students(x, bound):
    assert above(x, bound) == pytest.approx(stats.ttest_1samp(x, bound, alternative="greater").pvalue)
    assert above(x, bound) + below(x, bound) == pytest.approx(1)
    assert p_opposite(x, "equal", 0.0) == pytest.approx(stats.ttest_1samp(x, 0.0).pvalue)  # of two sides


@given(values, margin)
@settings(max_examples=60)
def test_equivalence_does_not_know_which_arm_is_which(x, margin):
    negated = [-v for v in x]
    for test in (p_claim, p_opposite):
        assert test(x, "equal", margin) == pytest.approx(test(negated, "equal", margin))
        assert test(x, "higher", margin) == pytest.approx(test(negated, "lower", margin))


@given(values, margin, margin)
@settings(max_examples=60)
def test_a_wider_margin_is_harder_to_pass_and_easier_to_stay_in(x, a, b):
    narrow, wide = sorted((a, b))
    for direction in ("higher", "lower"):
        assert p_claim(x, direction, wide) >= p_claim(x, direction, narrow) - 1e-9
        assert p_opposite(x, direction, wide) <= p_opposite(x, direction, narrow) + 1e-9
    assert p_claim(x, "equal", wide) <= p_claim(x, "equal", narrow) + 1e-9
    assert p_opposite(x, "equal", wide) >= p_opposite(x, "equal", narrow) - 1e-9


@given(values, st.sampled_from(["higher", "lower", "equal"]), margin)
def test_a_claim_and_its_opposite_are_never_both_shown(x, direction, margin):
    assert p_claim(x, direction, margin) + p_opposite(x, direction, margin) >= 1 - 1e-9


@pytest.mark.parametrize("direction", ["higher", "equal"])
def test_equivalence_and_superiority_hold_their_level_at_the_boundary(direction):
    draws = np.random.default_rng(1).normal(0.5, 1 if direction == "higher" else 0.1, size=(1500, 5))
    share = np.mean(p_claim(draws, direction, 0.5) < 0.05)
    assert share == pytest.approx(0.05, abs=0.02)


def test_without_spread_the_limit():
    assert above([0.3] * 5, 0.2) == below([0.1] * 5, 0.2) == 0
    assert above([0.2] * 5, 0.2) == below([0.2] * 5, 0.2) == 1
    assert above([0.8 - 0.2, 0.6, 0.7 - 0.1], 0.6) == 1  # the same number, but for rounding
    assert p_claim([0.0] * 5, "equal", 0.01) == 0
    assert p_opposite([0.0] * 5, "equal", 0.01) == 1
    with pytest.raises(ValueError, match="at least 2"):
        above([0.3], 0)
