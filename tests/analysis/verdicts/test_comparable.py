"""What stands beside a verdict where its comparison may mislead."""

import math

import pandas as pd
from judged_claims import CLAIM, judge, judge_looks, table

from analysis.numbers.table import COLUMNS

EQUAL = "both sides are equal in every seed: what differs between them has no effect here"


def test_sides_that_are_equal_in_every_seed():
    some = [0.31, 0.52, 0.47, 0.40, 0.55, 0.33, 0.29, 0.61]
    assert EQUAL in judge(some, some).note
    assert EQUAL not in judge(some, [*some[:-1], 0.6]).note
    assert EQUAL not in judge(some[:1], some[:1]).note  # one seed may be chance


def test_a_metric_without_room():
    assert "at the ceiling: 0.995 and 0.990" in judge([0.995] * 8, 0.99).note
    assert "at the floor: 0.005 and 0.010" in judge([0.005] * 8, 0.01).note
    assert "at the" not in judge([0.995] * 8, 0.2).note
    assert "at the" not in judge([0.001] * 8, 0.002, metric="heldout/length").note


def test_replies_that_were_cut():
    numbers = table([0.4, 0.5, 0.6], [0.2, 0.2, 0.2])
    where = ["toy", "cpu", "base-recipe"]
    cut = [
        [*where, seed, node, math.nan, "heldout/truncation_rate", share, math.nan, math.nan, f"{node}-{seed}"]
        for node, share in (("after", 0.25), ("before", 0.01))
        for seed in range(3)
    ]
    both = pd.concat([numbers, pd.DataFrame(cut, columns=COLUMNS)])
    verdict = judge_looks([CLAIM], both, "cpu", range(3))[-1][0]
    assert "25% of the replies of base-recipe/after were cut at the cap" in verdict.note
    assert "before were cut" not in verdict.note
