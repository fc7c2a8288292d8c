"""From differences to verdicts: which verdict, at which look, and why not another."""

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_claims import CLAIM, judge, judge_looks, table

from analysis.verdicts import claims
from analysis.verdicts.collapse import Collapses
from analysis.verdicts.decision import decide
from analysis.verdicts.evidence import open_to_doubt
from analysis.verdicts.pairs import Pairs
from encore.recipe.looks import LOOKS

number = st.floats(-2, 2).map(lambda x: round(x, 3))
direction = st.sampled_from(["higher", "lower", "equal"])
margin = st.floats(0, 1).map(lambda x: round(x, 3))
# 0.1 +- 0.02: clear of a margin of 0.05 at once
CLEAR = [0.1, 0.12, 0.08, 0.11, 0.09, 0.1, 0.13, 0.07]


def spread(mean: float, sd: float, n: int) -> list[float]:
    """n numbers, half above and half below, with this mean and nearly this standard deviation."""
    return [mean + sd * (1 if i % 2 else -1) for i in range(n)]


@given(number, number, direction, margin)
def test_decide_asks_every_value_of_the_interval(a, b, direction, margin):
    low, high = min(a, b), max(a, b)
    inside = [low + (high - low) * i / 200 for i in range(201)]
    truths = {claims.satisfies(d, direction, margin) for d in inside}
    decision = decide(low, high, direction, margin)
    if direction == "equal" and truths == {False}:  # the grid may step over a narrow |d| < margin
        assert decision in ("contradicted", "inconclusive")
        assert decision == "contradicted" or (low < margin and high > -margin)
    elif all(abs(abs(d) - edge) > 1e-6 for d in (low, high) for edge in (0, margin)):
        away = {"higher": high < 0, "lower": low > 0, "equal": True}[direction]
        refuted = "contradicted" if away else "weaker than claimed"
        assert decision == {(True,): "reproduced", (False,): refuted}.get(tuple(truths), "inconclusive")


@given(number, number, margin)
def test_swapping_the_arms_swaps_higher_and_lower(a, b, margin):
    low, high = min(a, b), max(a, b)
    assert decide(low, high, "higher", margin) == decide(-high, -low, "lower", margin)
    assert decide(low, high, "equal", margin) == decide(-high, -low, "equal", margin)


@given(number, direction, margin)
def test_the_boundary_itself_does_not_satisfy_a_claim(x, direction, margin):
    edge = {"higher": margin, "lower": -margin, "equal": margin}[direction]
    assert not claims.satisfies(edge, direction, margin)
    refuted = "weaker than claimed" if margin and direction != "equal" else "contradicted"
    assert decide(edge, edge, direction, margin) == refuted


@given(st.lists(st.tuples(number, number), min_size=1, max_size=7), direction, margin)
@settings(max_examples=30)  # each makes a table
def test_fewer_seeds_than_the_first_look_decide_nothing(pairs, direction, margin):
    after, before = zip(*pairs, strict=True)
    verdict = judge(after, before, direction=direction, margin=margin)
    assert verdict.verdict in claims.OPEN
    assert verdict.stands_at == f"{len(pairs)} of 8 seeds"
    assert (verdict.looks, verdict.decided_at) == (0, None)


def test_a_clear_difference_is_reproduced_at_the_first_look():
    verdict = judge([d + 0.5 for d in CLEAR], 0.2)
    assert verdict.verdict == "reproduced"
    assert verdict.n == verdict.agree == verdict.decided_at == 8
    assert verdict.mean == pytest.approx(0.4)
    assert verdict.low > 0.1
    assert verdict.p < verdict.p_claim < 0.05


def test_direction_and_size_are_judged_apart():
    """Surely above 0, surely below the margin of 0.2."""
    verdict = judge(CLEAR, margin=0.2)
    assert verdict.verdict == "weaker than claimed"
    assert verdict.note == "the direction holds"
    assert verdict.p_direction < 0.05
    assert verdict.p_decisive == verdict.p_opposite < 0.05
    noisy = judge(spread(0.1, 0.04, 8), margin=0.1)
    assert noisy.note == "the direction holds; the size is open"


def test_weaker_than_claimed_is_no_contradiction():
    """Surely below the margin of 0.2; whether above 0 is open, and whether it matters (from 0.02) too."""
    verdict = judge(spread(0.01, 0.05, 8), margin=0.2, smallest_effect=0.02)
    assert (verdict.verdict, verdict.decided_at) == ("weaker than claimed", 8)
    assert verdict.note.startswith("the direction is open")
    assert verdict.p_decisive == verdict.p_opposite < 0.05 < verdict.p_reverse
    few = judge(spread(0.01, 0.05, 6), margin=0.2, smallest_effect=0.02)
    assert few.verdict == "weaker so far"
    reverse = judge([-d for d in CLEAR], margin=0.2, smallest_effect=0.02)
    assert reverse.verdict == "contradicted"
    assert reverse.p_decisive == reverse.p_reverse < 0.05
    lower = judge([-d for d in CLEAR], margin=0.2, smallest_effect=0.02, direction="lower")
    assert lower.verdict == "weaker than claimed"


def test_without_a_margin_the_claim_is_its_direction_and_what_refutes_it_contradicts():
    """However the other claims of the family correct the one test or the other."""
    other = spread(0.5, 0.1, 8)
    rows = [table([-d for d in CLEAR], [0.0] * 8), table(other, [0.0] * 8).assign(metric="heldout/other")]
    stated = [
        CLAIM | {"margin": 0.0, "smallest_effect": 0.02},
        CLAIM | {"id": "other", "metric": "heldout/other", "margin": 0.9, "smallest_effect": 0.02},
    ]
    first, second = judge_looks(stated, pd.concat(rows), "cpu", range(8))[-1]
    assert (first.verdict, second.verdict) == ("contradicted", "weaker than claimed")


def test_a_direction_that_is_too_small_to_matter_is_no_more_than_that():
    verdict = judge(CLEAR, margin=0.0, smallest_effect=0.2)
    assert verdict.p_claim < 0.05
    assert verdict.verdict == "direction only"
    assert verdict.note == "the direction holds; the size is below the smallest effect that matters"


def test_no_difference_is_a_verdict_of_its_own():
    level = spread(0.0, 0.02, 8)
    verdict = judge(level, margin=0.0, smallest_effect=0.1)
    assert (verdict.verdict, verdict.decided_at) == ("no difference", 8)
    assert verdict.p_decisive == verdict.p_no_difference < 0.05
    assert judge(level, margin=0.0, smallest_effect=0.005).verdict == "inconclusive"
    assert judge(level, margin=0.1).verdict == "no difference"  # without its own: the margin


def test_the_opposite_direction_is_a_contradiction():
    verdict = judge([-5 * d for d in CLEAR], margin=0.0, smallest_effect=0.1)
    assert verdict.verdict == "contradicted"
    assert verdict.p_decisive == verdict.p_reverse < 0.05


def test_what_is_decided_stays_decided_and_says_at_which_look():
    later = judge([d + 0.5 for d in CLEAR] + spread(0.6, 0.1, 8))
    assert (later.verdict, later.decided_at, later.n) == ("reproduced", 8, 16)


def test_seeds_beyond_a_look_can_take_its_decision_back():
    later = spread(-0.1, 0.5, 8)
    rows = table([d + 0.2 for d in CLEAR] + later, [0.0] * 16)
    history = judge_looks([CLAIM], rows, "cpu", range(16))
    assert [verdict.verdict for (verdict,) in history] == ["reproduced", "inconclusive"]
    assert history[1][0].p_claim < 0.05 < history[1][0].p


def test_an_unplanned_look_decides_nothing():
    """Noise at the first look, then two seeds that make the difference: 10 is no planned look."""
    seeds = [*spread(0.5, 0.5, 8), 1.2, 1.3]
    verdict = judge(seeds, margin=0.0, smallest_effect=0.01)
    assert verdict.p < 0.025
    assert verdict.verdict == "supported so far"
    assert verdict.note == "exploratory: 10 seeds are no planned look"
    assert verdict.stands_at == "10 of 16 seeds"


def test_looking_again_asks_more_than_one_look_would():
    """p = 0.02 with 8 seeds is below 5%, and not below what the first of three looks may spend."""
    verdict = judge(spread(0.5, 0.55, 8), margin=0.0, smallest_effect=0.01)
    assert 0.005 < verdict.p < 0.025
    assert verdict.p_claim == pytest.approx(verdict.p * 0.05 / 0.00508, rel=0.01)
    assert verdict.verdict == "supported so far"
    assert verdict.needed == 32


def test_the_last_look_says_what_was_missing():
    """p = 0.02 with 32 seeds decides one claim and not three."""
    changes = {"margin": 0.0, "smallest_effect": 0.01, "primary": True}
    seeds = spread(0.16, 0.4, 32)
    alone = judge(seeds, **changes)
    assert (alone.verdict, alone.decided_at) == ("reproduced", 32)
    stated = [CLAIM | changes | {"id": str(i)} for i in range(3)]
    among = judge_looks(stated, table(seeds, [0.0] * 32), "cpu", range(32))[-1][0]
    assert among.verdict == "inconclusive"
    assert among.note.startswith("reproduced by its interval alone; corrected for looks and claims p = 0.0")
    assert (among.needed, among.stands_at) == (None, "")


def among(k: int) -> claims.Verdict:
    """A primary claim of p = 0.003 with 8 seeds, among k of which all others are hopeless."""
    changes = {"primary": True, "margin": 0.0, "smallest_effect": 0.01}
    others = [CLAIM | changes | {"id": str(i), "margin": 2.0} for i in range(1, k)]
    rows = table(spread(0.5, 0.37, 8), [0.0] * 8)
    return judge_looks([CLAIM | changes, *others], rows, "cpu", range(8))[-1][0]


def test_more_primary_claims_ask_more_of_each():
    alone, third = among(1), among(3)
    assert alone.verdict == "reproduced"
    assert third.p_claim == pytest.approx(3 * alone.p_claim)
    assert third.verdict == "supported so far"
    assert (third.low, third.high, third.p) == (alone.low, alone.high, alone.p)
    assert third.detectable > alone.detectable


def test_secondary_claims_are_corrected_apart_from_primary_ones():
    stated = [CLAIM | {"id": "first", "primary": True}] + [CLAIM | {"id": f"c{i}"} for i in range(10)]
    verdicts = judge_looks(stated, table([d + 0.2 for d in CLEAR], [0.0] * 8), "cpu", range(8))[-1]
    assert [v.family for v in verdicts] == ["primary"] + ["secondary"] * 10
    assert verdicts[0].p_claim == verdicts[1].p_claim  # ten alike cost nothing by Benjamini and Hochberg
    assert verdicts[0].p_claim == judge([d + 0.2 for d in CLEAR]).p_claim


def test_what_is_not_tested_is_not_counted():
    stated = [CLAIM | {"primary": True}, CLAIM | {"primary": True, "id": "other", "of": "x/after"}]
    first, other = judge_looks(stated, table(CLEAR, [0.0] * 8), "cpu", range(8))[-1]
    assert first.p_claim == judge(CLEAR).p_claim
    assert math.isnan(other.p_claim)


def test_one_outlier_does_not_decide_though_the_interval_cannot_see_it():
    verdict = judge([*[0.12] * 7, 1.4])
    assert verdict.low > 0.1
    assert verdict.verdict == "supported so far"


def test_differences_without_spread_are_decided_and_marked():
    verdict = judge([0.5] * 8, 0.2)
    assert (verdict.verdict, verdict.p) == ("reproduced", 0)
    assert verdict.note == "all 8 differences are equal: the test is its limit"
    assert judge([0.5] * 8, 0.2, direction="equal").p_opposite == 0


@pytest.mark.parametrize(
    ("margin", "direction", "known_from", "reproduced", "contradicted"),
    [
        (10, "lower", "at_most", True, False),
        (10, "lower", "at_least", False, True),
        (10, "higher", "at_most", False, True),
        (10, "higher", "at_least", True, False),
        (10, "equal", "at_most", False, True),  # differences below zero: the truth is further off
        (10, "equal", "at_least", False, False),
    ],
)
def test_no_verdict_rests_on_an_unknown_side(margin, direction, known_from, reproduced, contradicted):
    paired = Pairs((0, 1), (-1.0, -2.0), **{known_from: True})
    assert open_to_doubt(paired, direction) == (not reproduced, not contradicted)


def test_training_stopped_for_a_decided_claim_leaves_it_as_it_was():
    """The arm that it compares has no seeds after the look that decided; another claim goes on."""
    rows = table([d + 0.5 for d in CLEAR], [0.0] * 16)
    going_on = rows[rows.node == "before"].assign(node="late", value=spread(0.5, 0.5, 16))
    going_on = going_on.assign(source=[f"late-{seed}" for seed in range(16)])
    stated = [CLAIM, CLAIM | {"id": "open", "of": "base-recipe/late", "against": "base-recipe/before"}]
    history = judge_looks(stated, pd.concat([rows, going_on]), "cpu", range(16))
    assert [v.verdict for v in history[0]] == ["reproduced", "supported so far"]
    stopped = history[1][0]
    assert (stopped.verdict, stopped.n, stopped.asked, stopped.note) == ("reproduced", 8, 16, "")
    assert stopped.p_claim == history[0][0].p_claim


def test_where_one_arm_alone_collapses_no_mean_decides():
    claim = CLAIM | {"of": "base-recipe/after", "against": "other/after"}
    rows = table([d + 0.5 for d in CLEAR], [0.0] * 8).replace({"node": {"before": "after"}})
    rows.loc[8:, "arm"] = "other"

    def verdict(**seeds: set[int]) -> claims.Verdict:
        arms = {arm.replace("_", "-"): frozenset(which) for arm, which in seeds.items()}
        return judge_looks([claim], rows, "cpu", range(8), collapsed=Collapses(arms))[-1][0]

    assert verdict().verdict == "reproduced"
    some = verdict(other={1, 5})
    assert (some.verdict, some.decided) == ("inconclusive", False)
    assert some.note == "2 of 8 runs of other alone collapsed: their mean decides nothing"
    assert verdict(other={1}, base_recipe={2}).verdict == "reproduced"  # both arms have them
    assert verdict(other=set(range(8))).verdict == "reproduced"  # all runs are of one kind
    assert verdict(other={99}).verdict == "reproduced"  # of no seed that is judged


def test_a_look_needs_most_of_its_seeds():
    """With numbers of four seeds of eight nothing is decided, however clear they are."""
    four = [0.8, math.nan, 0.81, math.nan, 0.79, math.nan, 0.8, math.nan]
    assert judge(four).verdict == "supported so far"
    assert judge([*four[:7], 0.8]).verdict == "reproduced"
    assert LOOKS[0] == 8
