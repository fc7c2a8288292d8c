"""From the numbers of a run to verdicts: which word, at which look, and why not another."""

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_claims import CLAIM, judge, judge_looks, table
from scipy import stats

from analysis.verdicts import claims
from analysis.verdicts.collapse import Collapses
from encore.recipe.looks import LOOKS

number = st.floats(-2, 2).map(lambda x: round(x, 3))
direction = st.sampled_from(["higher", "lower", "equal"])
margin = st.floats(0, 1).map(lambda x: round(x, 3))
# 0.1 +- 0.02: clear of a margin of 0.05 at once
CLEAR = [0.1, 0.12, 0.08, 0.11, 0.09, 0.1, 0.13, 0.07]


def spread(mean: float, sd: float, n: int) -> list[float]:
    """n numbers, half above and half below, with this mean and nearly this standard deviation."""
    return [mean + sd * (1 if i % 2 else -1) for i in range(n)]


@given(st.lists(st.tuples(number, number), min_size=1, max_size=7), direction, margin)
@settings(max_examples=30)  # each makes a table
def test_fewer_seeds_than_the_first_look_decide_nothing(pairs, direction, margin):
    after, before = zip(*pairs, strict=True)
    verdict = judge(after, before, direction=direction, margin=margin or 0.1)
    assert verdict.word == "open"
    assert verdict.stands_at == f"{len(pairs)} of 8 seeds"
    assert verdict.look is None
    assert math.isnan(verdict.low)
    assert math.isnan(verdict.level)
    assert math.isnan(verdict.plain_low) == (len(pairs) == 1)


def test_a_clear_difference_is_shown_at_the_first_look():
    verdict = judge([d + 0.5 for d in CLEAR], 0.2)
    assert verdict.word == "shown"
    assert verdict.n == verdict.agree == verdict.look == 8
    assert verdict.estimate == pytest.approx(0.4)
    assert 0.1 < verdict.low < verdict.plain_low < verdict.plain_high < verdict.high
    plain = stats.ttest_1samp(verdict.differences, 0.0).confidence_interval(0.95)
    assert (verdict.plain_low, verdict.plain_high) == pytest.approx(tuple(plain))
    decisive = stats.ttest_1samp(verdict.differences, 0.0).confidence_interval(verdict.level)
    assert (verdict.low, verdict.high) == pytest.approx(tuple(decisive))


def test_smaller_than_claimed_is_said_only_with_the_direction():
    """Surely below the margin of 0.2. The rule before called both of them weaker than claimed."""
    assert judge(CLEAR, margin=0.2).word == "shown, smaller"
    sign_open = judge(spread(-0.01, 0.05, 8), margin=0.2, smallest_effect=0.02)
    assert (sign_open.word, sign_open.agree) == ("open", 0)
    assert sign_open.high < 0.2


def test_a_certain_loss_is_reversed_however_small():
    """The rule before called it no difference: all 16 seeds lose 0.044, where 0.1 would matter."""
    verdict = judge(spread(-0.044, 0.02, 16), margin=0.0, smallest_effect=0.1)
    assert verdict.word == "reversed"
    assert verdict.high < 0


def test_what_is_shown_but_would_not_matter_is_smaller():
    assert judge(CLEAR, margin=0.0, smallest_effect=0.2).word == "shown, smaller"


def test_equivalence_lies_inside_the_smallest_effect_on_both_sides():
    level = spread(0.0, 0.02, 8)
    verdict = judge(level, margin=0.0, smallest_effect=0.1)
    assert (verdict.word, verdict.look) == ("equivalent", 8)
    assert -0.1 < verdict.low < 0 < verdict.high < 0.1
    assert judge(level, margin=0.0, smallest_effect=0.005).word == "open"
    assert judge(level, margin=0.1).word == "equivalent"  # without its own: the margin


def test_what_a_look_decides_is_frozen_whatever_comes_after():
    """The rule before took a decision back by the seeds after it."""
    later = spread(-0.1, 0.5, 8)
    rows = table([d + 0.2 for d in CLEAR] + later, [0.0] * 16)
    first, last = (verdicts[0] for verdicts in judge_looks([CLAIM], rows, "cpu", range(16)))
    assert (first.word, last.word) == ("shown", "shown")
    assert (last.n, last.look, last.asked) == (8, 8, 16)
    assert (last.low, last.high, last.estimate) == (first.low, first.high, first.estimate)


def test_without_further_seeds_a_claim_is_not_judged_again():
    """The rule before called it shown, by the seeds of the first look at the looser level of the second."""
    stopped = CLAIM | {"primary": True}
    goes_on = CLAIM | {"id": "other", "of": "hot/after", "against": "hot/before"}
    hot = table(spread(0.0, 0.5, 16), [0.0] * 16).replace({"arm": {"base-recipe": "hot"}})
    rows = pd.concat([table(spread(0.2, 0.07, 8), [0.0] * 8), hot])
    first, last = judge_looks([stopped, goes_on], rows, "cpu", range(16))
    assert (first[0].word, last[0].word) == ("open", "open")
    assert (last[0].look, last[0].n, last[0].low, last[0].high) == (8, 8, first[0].low, first[0].high)
    assert (last[1].look, last[1].n) == (16, 16)


def test_a_gate_that_closes_later_takes_no_decision_back():
    """The rule before called a decided claim not tested, as its gate fell below the bound at 16 seeds."""
    rows = table([d + 0.5 for d in CLEAR] * 2, [0.03] * 8 + [0.0] * 8)
    gated = CLAIM | {"needs": "clip_cuts >= 0.02"}
    gates = {"clip_cuts": {"metric": "heldout/accuracy", "of": "base-recipe/before"}}
    first, last = judge_looks([gated], rows, "cpu", range(16), gates)
    assert [first[0].word, last[0].word] == ["shown", "shown"]


def test_an_unplanned_number_of_seeds_is_judged_at_the_last_look_passed():
    """Noise at the first look, then two seeds that make the difference: 10 is no planned look."""
    seeds = [*spread(0.5, 0.5, 8), 1.2, 1.3]
    verdict = judge(seeds, margin=0.0, smallest_effect=0.01)
    eight = judge(seeds[:8], margin=0.0, smallest_effect=0.01)
    assert (verdict.word, verdict.n, verdict.look, verdict.asked) == ("open", 8, 8, 10)
    assert (verdict.low, verdict.high) == (eight.low, eight.high)
    assert verdict.stands_at == "10 of 16 seeds"


def test_looking_again_asks_more_than_one_look_would():
    """p = 0.02 with 8 seeds is below 5%, and not below what the first of three looks may spend."""
    verdict = judge(spread(0.5, 0.55, 8), margin=0.0, smallest_effect=0.01)
    assert verdict.low < 0 < verdict.plain_low
    assert (verdict.word, verdict.needed) == ("open", 32)


@pytest.mark.parametrize(
    ("mean", "needed", "near"), [(0.45, 16, False), (0.33, 32, False), (0.11, None, True)]
)
def test_an_open_claim_says_what_it_would_take(mean, needed, near):
    verdict = judge(spread(mean, 0.3, 8), margin=0.1, smallest_effect=0.02)
    assert (verdict.word, verdict.needed) == ("open", needed)
    assert ("so near its margin that 32 seeds are not likely to decide it" in verdict.note) == near


def test_after_the_last_look_an_open_claim_lies_too_near_its_margin():
    verdict = judge(spread(0.1, 0.4, 32), margin=0.0, smallest_effect=0.01)
    assert (verdict.word, verdict.needed, verdict.stands_at) == ("open", None, "")
    assert "so near its margin" in verdict.note


def among(k: int) -> claims.Verdict:
    """A primary claim of p = 0.003 with 8 seeds, among k of which all others are hopeless."""
    changes = {"primary": True, "margin": 0.0, "smallest_effect": 0.01}
    others = [CLAIM | changes | {"id": str(i), "margin": 2.0} for i in range(1, k)]
    rows = table(spread(0.5, 0.3, 8), [0.0] * 8)
    return judge_looks([CLAIM | changes, *others], rows, "cpu", range(8))[-1][0]


def test_more_primary_claims_ask_more_of_each():
    alone, third = among(1), among(3)
    assert (alone.word, third.word) == ("shown", "open")
    assert third.level > alone.level
    assert third.low < 0 < alone.low
    assert (third.plain_low, third.plain_high) == (alone.plain_low, alone.plain_high)
    assert third.detectable > alone.detectable


def test_secondary_claims_are_counted_apart_from_primary_ones():
    stated = [CLAIM | {"id": "first", "primary": True}] + [CLAIM | {"id": f"c{i}"} for i in range(10)]
    verdicts = judge_looks(stated, table([d + 0.2 for d in CLEAR], [0.0] * 8), "cpu", range(8))[-1]
    assert [v.family for v in verdicts] == ["primary"] + ["secondary"] * 10
    assert verdicts[0].level == verdicts[1].level  # ten that are decided cost nothing
    assert verdicts[0].level == judge([d + 0.2 for d in CLEAR]).level


def test_what_is_not_tested_is_not_counted():
    stated = [CLAIM | {"primary": True}, CLAIM | {"primary": True, "id": "other", "of": "x/after"}]
    first, other = judge_looks(stated, table(CLEAR, [0.0] * 8), "cpu", range(8))[-1]
    assert first.level == judge(CLEAR, primary=True).level
    assert (other.word, other.look) == ("not tested", None)
    assert math.isnan(other.low)


def test_another_attempt_has_a_wider_interval():
    first, second = judge(CLEAR), judge(CLEAR, again=["2026-11-22: open, 8 seeds"])
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.low < first.low < first.high < second.high


def test_differences_without_spread_are_decided_and_marked():
    verdict = judge([0.5] * 8, 0.2)
    assert (verdict.word, verdict.low, verdict.high) == ("shown", pytest.approx(0.3), pytest.approx(0.3))
    assert verdict.note == "all 8 differences are equal: the interval is one number"
    assert judge([0.5] * 8, 0.2, direction="equal").word == "reversed"


def test_training_stopped_for_a_decided_claim_leaves_it_as_it_was():
    """The arm that it compares has no seeds after the look that decided; another claim goes on."""
    rows = table([d + 0.5 for d in CLEAR], [0.0] * 16)
    going_on = rows[rows.node == "before"].assign(node="late", value=spread(0.5, 0.5, 16))
    going_on = going_on.assign(source=[f"late-{seed}" for seed in range(16)])
    stated = [CLAIM, CLAIM | {"id": "open", "of": "base-recipe/late", "against": "base-recipe/before"}]
    history = judge_looks(stated, pd.concat([rows, going_on]), "cpu", range(16))
    assert [v.word for v in history[0]] == ["shown", "open"]
    stopped = history[1][0]
    assert (stopped.word, stopped.n, stopped.asked, stopped.note) == ("shown", 8, 16, "")
    assert stopped.low == history[0][0].low


def test_where_one_arm_alone_collapses_the_median_decides_and_the_rate_stands_beside_it():
    """The rule before called it inconclusive at p = 2e-9: 16 of 16 seeds gain, and 3 rivals collapsed."""
    claim = CLAIM | {"of": "base-recipe/after", "against": "other/after"}
    gains = [0.3, 0.25, 0.9, 0.28, 0.31, 0.9, 0.27, 0.33] * 2
    rows = table(gains, [0.0] * 16).replace({"node": {"before": "after"}})
    rows.loc[16:, "arm"] = "other"

    def verdict(**seeds: set[int]) -> claims.Verdict:
        arms = {arm.replace("_", "-"): frozenset(which) for arm, which in seeds.items()}
        return judge_looks([claim], rows, "cpu", range(16), collapsed=Collapses(arms))[-1][0]

    some = verdict(other={2, 5, 10})
    assert (some.word, some.look, some.by_median) == ("shown", 16, True)
    assert some.estimate == pytest.approx(0.305)
    assert 0.1 < some.low <= some.estimate <= some.high <= 0.9
    rate = "0 of 16 runs of base-recipe collapsed, 3 of 16 of other (Boschloo's exact test: p = 0.1"
    assert some.note.startswith(rate)
    assert some.note.endswith("): judged by the median")
    assert math.isnan(some.detectable)
    for fallen in (
        {},
        {"other": {2}, "base_recipe": {1}},  # both arms have them
        {"other": set(range(16))},  # all runs are of one kind
        {"other": {99}},  # of no seed that is judged
    ):
        assert not verdict(**fallen).by_median


def test_a_look_needs_most_of_its_seeds():
    """With numbers of four seeds of eight nothing is decided, however clear they are."""
    four = [0.8, math.nan, 0.81, math.nan, 0.79, math.nan, 0.8, math.nan]
    assert judge(four).word == "open"
    assert judge([*four[:7], 0.8]).word == "shown"
    assert LOOKS[0] == 8
