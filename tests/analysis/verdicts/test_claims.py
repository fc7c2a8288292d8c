import math
from dataclasses import asdict

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.numbers.table import COLUMNS, collect
from analysis.verdicts import claims
from recipes.errors import UserError

CLAIM = {
    "id": "gain",
    "says": "It helps.",
    "source": "Fig. 1",
    "metric": "heldout/accuracy",
    "of": "base-recipe/after",
    "against": "base-recipe/before",
    "direction": "higher",
    "margin": 0.1,
}


number = st.floats(-2, 2).map(lambda x: round(x, 3))


direction = st.sampled_from(["higher", "lower", "equal"])


margin = st.floats(0, 1).map(lambda x: round(x, 3))


def table(after, before, shared: bool = False) -> pd.DataFrame:
    """Rows of one arm, one value a seed; `shared`: every seed read the same artefacts."""
    rows = []
    for node, column in (("after", after), ("before", before)):
        for seed, value in enumerate(column):
            source = f"{node}-{0 if shared else seed}"
            where = ["toy", "cpu", "base-recipe", seed, node, math.nan, "heldout/accuracy"]
            rows.append([*where, value, math.nan, math.nan, source])
    return pd.DataFrame(rows, columns=COLUMNS)


def judge(after, before, seeds=None, scale="cpu", shared=False, **changes) -> claims.Verdict:
    seeds = range(len(after)) if seeds is None else seeds
    return claims.judge_all([CLAIM | changes], table(after, before, shared), scale, seeds)[0]


@given(number, number, direction, margin)
def test_decide_asks_every_value_of_the_interval(a, b, direction, margin):
    low, high = min(a, b), max(a, b)
    inside = [low + (high - low) * i / 200 for i in range(201)]
    truths = {claims.satisfies(d, direction, margin) for d in inside}
    decision = claims.decide(low, high, direction, margin)
    if direction == "equal" and truths == {False}:  # the grid may step over a narrow |d| < margin
        assert decision in ("contradicted", "inconclusive")
        assert decision == "contradicted" or (low < margin and high > -margin)
    elif all(abs(abs(d) - margin) > 1e-6 for d in (low, high)):
        assert decision == {(True,): "reproduced", (False,): "contradicted"}.get(
            tuple(truths), "inconclusive"
        )


@given(number, number, margin)
def test_swapping_the_arms_swaps_higher_and_lower(a, b, margin):
    low, high = min(a, b), max(a, b)
    assert claims.decide(low, high, "higher", margin) == claims.decide(-high, -low, "lower", margin)
    assert claims.decide(low, high, "equal", margin) == claims.decide(-high, -low, "equal", margin)


@given(number, direction, margin)
def test_the_boundary_itself_does_not_satisfy_a_claim(x, direction, margin):
    edge = {"higher": margin, "lower": -margin, "equal": margin}[direction]
    assert not claims.satisfies(edge, direction, margin)
    assert claims.decide(edge, edge, direction, margin) == "contradicted"


@given(number, number, direction, margin, margin)
def test_a_verdict_follows_its_margin_one_way(a, b, direction, m, n):
    """A wider margin takes from higher and lower, and gives to equal."""
    order = ["contradicted", "inconclusive", "reproduced"]
    narrow, wide = (claims.decide(min(a, b), max(a, b), direction, x) for x in sorted((m, n)))
    step = order.index(wide) - order.index(narrow)
    assert step >= 0 if direction == "equal" else step <= 0


@given(st.lists(number, min_size=5, max_size=7), direction, margin)
@settings(max_examples=40)  # each makes a table
def test_a_decision_has_both_the_interval_and_the_test(d, direction, margin):
    verdict = judge(d, [0.0] * len(d), direction=direction, margin=margin)
    by_interval = claims.decide(verdict.low, verdict.high, direction, margin)
    if verdict.verdict == "reproduced":
        assert by_interval == "reproduced"
        assert verdict.p_holm < 0.05
    elif verdict.verdict == "contradicted":
        assert by_interval == "contradicted"
        assert verdict.p_opposite_holm < 0.05
    else:
        assert bool(verdict.note) == (by_interval != "inconclusive")


@given(st.lists(st.tuples(number, number), min_size=1, max_size=4), direction, margin)
@settings(max_examples=30)  # each makes a table
def test_fewer_than_five_seeds_decide_nothing(pairs, direction, margin):
    after, before = zip(*pairs, strict=True)
    verdict = judge(after, before, direction=direction, margin=margin)
    assert verdict.verdict in ("supported so far", "opposed so far", "inconclusive")
    assert verdict.seeds_so_far == f"{len(pairs)} of 5 seeds"


def test_five_clear_seeds_reproduce():
    verdict = judge([0.8, 0.81, 0.79, 0.82, 0.8], [0.2, 0.19, 0.21, 0.2, 0.2])
    assert verdict.verdict == "reproduced"
    assert verdict.n == verdict.agree == 5
    assert verdict.mean == pytest.approx(0.604)
    assert verdict.low > 0.1
    assert verdict.seeds_so_far == ""


def test_right_direction_but_too_small_is_contradicted_and_says_so():
    verdict = judge([0.25, 0.26, 0.24, 0.25, 0.25], [0.2] * 5)
    assert verdict.verdict == "contradicted"
    assert "direction holds" in verdict.note


def test_inconclusive_tells_the_seeds_it_would_take():
    verdict = judge([0.2, 0.5, 0.3, 0.45, 0.1], [0.1] * 5)
    assert verdict.verdict == "inconclusive"
    assert verdict.needed > 5
    assert verdict.detectable > 0.1


ONCE = [0.15, 0.35, 0.21, 0.4, 0.3]  # p = 0.008 against a margin of 0.1


def many(k: int) -> list[claims.Verdict]:
    """The claim of ONCE among k alike, all but the first of them hopeless."""
    stated = [CLAIM] + [CLAIM | {"id": f"c{i}", "margin": 0.29} for i in range(1, k)]
    return claims.judge_all(stated, table(ONCE, [0.0] * 5), "cpu", range(5))


def test_many_claims_ask_more_of_each():
    alone, among = many(1)[0], many(12)[0]
    assert alone.verdict == "reproduced"
    assert alone.note == ""
    assert alone.p == alone.p_holm == among.p == pytest.approx(0.0081, abs=1e-4)
    assert among.p_holm == pytest.approx(12 * among.p)
    assert among.verdict == "inconclusive"
    assert (among.low, among.high) == (alone.low, alone.high)
    expected = (
        "alone it would be reproduced (p = 0.0081); not after Holm's correction over 12 claims (p = 0.097)"
    )
    assert among.note == expected
    assert among.detectable > alone.detectable
    assert among.needed > 5


def test_a_claim_that_fails_is_corrected_among_those_that_fail():
    verdict = many(12)[1]
    assert verdict.p_opposite < 0.5 < verdict.p
    stated = [CLAIM | {"id": str(i), "direction": "lower"} for i in range(12)]
    refuted = claims.judge_all(stated, table(ONCE, [0.0] * 5), "cpu", range(5))[0]
    assert refuted.verdict == "contradicted"
    assert refuted.p_decisive == refuted.p_opposite_holm == pytest.approx(12 * refuted.p_opposite)


def test_what_is_not_tested_is_not_counted():
    stated = [CLAIM, CLAIM | {"id": "other", "of": "x/after"}]
    first, other = claims.judge_all(stated, table(ONCE, [0.0] * 5), "cpu", range(5))
    assert first.p == first.p_holm
    assert math.isnan(other.p_holm)


def test_one_outlier_does_not_decide_though_the_interval_cannot_see_it():
    verdict = judge([0.12, 0.12, 0.12, 0.12, 1.4], [0.0] * 5)
    assert verdict.low > 0.1
    assert verdict.verdict == "inconclusive"
    assert "reproduced by its interval, but not by its t test (p = 0.1" in verdict.note


def test_four_seeds_are_judged_by_their_interval_and_decide_nothing():
    assert judge(ONCE[1:], [0.0] * 4).verdict == "supported so far"


def test_differences_without_spread_are_decided_and_marked():
    verdict = judge([0.5] * 5, [0.2] * 5)
    assert (verdict.verdict, verdict.p) == ("reproduced", 0)
    assert verdict.note == "all 5 differences are equal: the test is its limit"
    assert judge([0.5] * 5, [0.2] * 5, direction="equal").p_opposite == 0


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
    paired = claims.Pairs((0, 1), (-1.0, -2.0), **{known_from: True})
    assert claims.open_to_doubt(paired, direction) == (not reproduced, not contradicted)


def test_differences_are_paired_by_seed_not_by_row():
    rows = table([0.5, 0.7], [0.1, 0.2])
    shuffled = rows.iloc[[3, 0, 2, 1]]
    (verdict,) = claims.judge_all([CLAIM], shuffled, "cpu", [0, 1])
    assert verdict.differences == pytest.approx((0.4, 0.5))


def test_one_seed_has_no_interval():
    verdict = judge([0.8], [0.2])
    assert verdict.verdict == "supported so far"
    assert math.isnan(verdict.low)
    assert verdict.needed is None


def test_seeds_that_share_both_models_count_once():
    verdict = judge([0.8] * 5, [0.2] * 5, shared=True)
    assert verdict.n == 1
    assert verdict.verdict == "supported so far"
    assert "share 1 model" in verdict.note


def test_without_a_rival_the_value_itself_is_judged():
    claim = {key: value for key, value in CLAIM.items() if key != "against"}
    verdict = claims.judge_all([claim], table([0.3] * 5, [0.9] * 5), "cpu", range(5))[0]
    assert verdict.mean == pytest.approx(0.3)
    assert verdict.verdict == "reproduced"


def test_the_rival_may_be_of_another_metric():
    rows = table([0.8, 0.9], [0.1, 0.2])
    other = rows[rows.node == "after"].assign(metric="heldout/maj@4", value=[0.85, 0.97])
    claim = CLAIM | {"metric": "heldout/maj@4", "against": CLAIM["of"], "against_metric": "heldout/accuracy"}
    verdict = claims.judge_all([claim], pd.concat([rows, other]), "cpu", [0, 1])[0]
    assert verdict.differences == pytest.approx((0.05, 0.07))
    assert verdict.against == "base-recipe/after (heldout/accuracy)"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scales": ["paper", "gpu"]}, "claimed at scale paper, gpu only"),
        ({"of": "longer-cap/after"}, "arm longer-cap was not run"),
        ({"metric": "heldout/pass@8"}, "no heldout/pass@8 at base-recipe/after; nearest: heldout/accuracy"),
        ({"against": "base-recipe/middle"}, "no heldout/accuracy at base-recipe/middle"),
    ],
)
def test_what_was_not_run_is_not_tested(change, reason):
    verdict = judge([0.8, 0.8], [0.2, 0.2], **change)
    assert (verdict.verdict, verdict.note) == ("not tested", reason)
    assert verdict.n == 0


def test_a_missing_or_undefined_seed_is_left_out_and_named():
    verdict = judge([0.8, math.nan, 0.8], [0.2, 0.2, 0.2], seeds=[0, 1, 2, 3])
    assert verdict.seeds == (0, 2)
    assert verdict.note == "no number for seed 1, 3"


def test_nothing_defined_is_not_tested():
    verdict = judge([math.nan, math.nan], [0.2, 0.2])
    assert verdict.verdict == "not tested"
    assert verdict.note == "no number for seed 0, 1"


def test_a_csv_gives_the_same_verdicts(tmp_path):
    verdicts = [
        judge([0.8, 0.5, 0.9], [0.2, 0.2, 0.25], says='NA, "quoted", 1'),
        judge([0.8], [0.2], source="1"),
        judge([0.8], [0.2], of="x/after", against=""),
    ]
    path = tmp_path / "claims.csv"
    claims.frame(verdicts).to_csv(path, index=False)
    read = claims.read(path)
    for before, after in zip(verdicts, read, strict=True):
        old, new = asdict(before), asdict(after)
        assert new.pop("seeds") == old.pop("seeds")
        assert new.pop("differences") == pytest.approx(old.pop("differences"))
        assert new == pytest.approx(old, nan_ok=True)
    claims.frame([]).to_csv(path, index=False)
    assert claims.read(path) == []
    claims.frame(verdicts).drop(columns="p_holm").to_csv(path, index=False)
    with pytest.raises(UserError, match="no column p_holm: an older version"):
        claims.read(path)


def test_frame_and_tally():
    verdicts = [judge([0.8, 0.9], [0.2, 0.2]), judge([0.8], [0.2], of="x/after")]
    frame = claims.frame(verdicts)
    assert frame.differences[0] == "0:0.6 1:0.7"
    assert claims.tally(verdicts) == {"supported so far": 1, "not tested": 1}
    assert list(claims.frame([]).columns) == list(frame.columns)


def test_a_missing_seed_is_named_and_the_rest_is_judged(run):
    table = collect(run)
    table = table[~((table.arm == "base-recipe") & (table.seed == 1) & (table.node == "after"))]
    verdict = claims.judge_all([run.spec["claims"][0]], table, run.scale, run.seeds)[0]
    assert verdict.seeds == (0, 2)
    assert verdict.note == "no number for seed 1"
