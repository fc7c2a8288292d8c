"""What a claim is judged by: which numbers are compared, of which seeds, and why there may be none."""

import math

import pandas as pd
import pytest
from judged_claims import CLAIM, judge, judge_looks, table

from analysis.numbers.table import collect, final
from analysis.verdicts.decision import judge_run


def test_differences_are_paired_by_seed_not_by_row():
    rows = table([0.5, 0.7], [0.1, 0.2])
    shuffled = rows.iloc[[3, 0, 2, 1]]
    ((verdict,),) = judge_looks([CLAIM], shuffled, "cpu", [0, 1])
    assert verdict.differences == pytest.approx((0.4, 0.5))


def test_one_seed_has_no_interval():
    verdict = judge([0.8], 0.2)
    assert verdict.word == "open"
    assert math.isnan(verdict.low)
    assert math.isnan(verdict.plain_low)
    assert verdict.needed is None


def test_seeds_that_share_both_models_count_once():
    verdict = judge([0.8] * 8, 0.2, shared=True)
    assert verdict.n == 1
    assert verdict.word == "open"
    assert "share 1 model" in verdict.note


def test_without_a_rival_the_value_itself_is_judged():
    claim = {key: value for key, value in CLAIM.items() if key != "against"}
    verdict = judge_looks([claim], table([0.3] * 8, [0.9] * 8), "cpu", range(8))[-1][0]
    assert verdict.estimate == pytest.approx(0.3)
    assert verdict.word == "shown"


def test_the_rival_may_be_of_another_metric():
    rows = table([0.8, 0.9], [0.1, 0.2])
    other = rows[rows.node == "after"].assign(metric="heldout/maj@4", value=[0.85, 0.97])
    claim = CLAIM | {"metric": "heldout/maj@4", "against": CLAIM["of"], "against_metric": "heldout/accuracy"}
    verdict = judge_looks([claim], pd.concat([rows, other]), "cpu", [0, 1])[-1][0]
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
    verdict = judge([0.8, 0.8], 0.2, **change)
    assert (verdict.word, verdict.note) == ("not tested", reason)
    assert verdict.n == 0


def test_a_missing_or_undefined_seed_is_left_out_and_named():
    verdict = judge([0.8, math.nan, 0.8], 0.2, seeds=[0, 1, 2, 3])
    assert verdict.seeds == (0, 2)
    assert verdict.note == "no number for seed 1, 3"


def test_nothing_defined_is_not_tested():
    verdict = judge([math.nan, math.nan], 0.2)
    assert verdict.word == "not tested"
    assert verdict.note == "no number for seed 0, 1"


def test_a_missing_seed_is_named_and_the_rest_is_judged(run):
    rows = final(collect(run))
    rows = rows[~((rows.arm == "base-recipe") & (rows.seed == 1) & (rows.node == "after"))]
    verdict = judge_run(run, rows)[-1][0]
    assert verdict.seeds == (0, 2)
    assert verdict.note == "no number for seed 1"
