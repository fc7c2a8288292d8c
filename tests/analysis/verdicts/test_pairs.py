"""What a claim is judged by where a run did not arrive."""

import math

import pandas as pd
import pytest

from analysis.numbers.table import COLUMNS
from analysis.verdicts.claims import Verdict
from analysis.verdicts.judge import judge_looks
from analysis.verdicts.pairs import pairs

CLAIM = {
    "id": "faster",
    "says": "It is faster.",
    "source": "Fig. 1",
    "metric": "updates_to/accuracy=0.5",
    "of": "new/grpo",
    "against": "old/grpo",
    "direction": "lower",
    "margin": 0,
}
NEVER = math.nan


def table(numbers: dict[str, dict[str, list[float]]]) -> pd.DataFrame:
    """arm -> metric -> one value a seed, of stage grpo."""
    rows = [
        ["toy", "cpu", arm, seed, "grpo", math.nan, metric, value, math.nan, math.nan, f"{arm}-{seed}"]
        for arm, metrics in numbers.items()
        for metric, values in metrics.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def race(new: list[float], old: list[float], budget: float = 200, rivals: float = 200, unit="updates"):
    """The final numbers of two arms, each with its budget."""
    return table(
        {
            "new": {f"{unit}_to/accuracy=0.5": new, f"{unit}_to/budget": [budget] * len(new)},
            "old": {f"{unit}_to/accuracy=0.5": old, f"{unit}_to/budget": [rivals] * len(old)},
        }
    )


def judge(new, old, **changes) -> Verdict:
    return judge_looks([CLAIM | changes], race(new, old), "cpu", range(len(new)))[-1][0]


def test_all_arrived():
    verdict = judge([50, 60, 55, 52, 58, 51, 53, 57], [100, 120, 105, 104, 111, 101, 104, 110])
    assert verdict.differences == (-50, -60, -50, -52, -53, -50, -51, -53)
    assert (verdict.verdict, verdict.note) == ("reproduced", "")


def test_a_run_that_never_arrived_cannot_help_its_own_arm():
    """Four fast seeds and one that gave up, late in which the rival arrived: not faster."""
    verdict = judge([50, 60, 55, 52, NEVER], [150, 160, 155, 153, 190])
    assert verdict.differences == (-100, -100, -100, -101, 10)
    assert verdict.verdict == "inconclusive"
    assert "new/grpo did not reach it with 1 of 5 seeds: the budget is counted" in verdict.note
    assert verdict.p == 1


def test_where_the_rival_never_arrived_the_least_lead_is_counted():
    verdict = judge([50, 60, 55, 52, 58, 51, 53, 57], [NEVER] * 8)
    assert verdict.differences == (-150, -140, -145, -148, -142, -149, -147, -143)
    assert verdict.verdict == "reproduced"
    assert "old/grpo did not reach it with 8 of 8 seeds" in verdict.note


def test_the_least_lead_does_not_contradict_a_larger_one():
    verdict = judge([190, 192, 191, 189, 190], [NEVER] * 5, margin=50)
    assert verdict.high < 0
    assert verdict.low > -50
    assert verdict.verdict == "inconclusive"
    assert "not weaker than claimed: the differences known from one side could overturn it" in verdict.note


def test_where_nobody_arrived_nothing_is_known():
    verdict = judge([50, 60, 55, 52, 58, NEVER, 51, 53], [100, 120, 105, 104, 111, NEVER, 101, 104])
    assert verdict.seeds == (0, 1, 2, 3, 4, 6, 7)
    assert "neither reached it with seed 5: left out" in verdict.note
    assert verdict.verdict == "reproduced"
    nobody = judge([NEVER] * 5, [NEVER] * 5, direction="equal", margin=10)
    assert (nobody.verdict, nobody.n) == ("not tested", 0)


def test_both_arms_have_the_smaller_budget():
    """The rival arrives with more samples than the other was ever given: nobody was faster."""
    claim = CLAIM | {"metric": "samples_to/accuracy=0.5"}
    paired = pairs(claim, race([NEVER, 900], [1500, 1500], 1000, 2000, unit="samples"), "cpu", [0, 1])
    assert paired.seeds == (1,)
    assert paired.differences == (-100,)  # 900 less 1000
    assert (paired.at_least, paired.at_most) == (False, True)


def test_one_arm_alone_counts_its_budget():
    claim = {key: value for key, value in CLAIM.items() if key != "against"} | {"direction": "higher"}
    paired = pairs(claim, race([50, NEVER], [0, 0]), "cpu", [0, 1])
    assert paired.differences == (50, 200)
    assert (paired.at_least, paired.at_most) == (True, False)


def test_another_metric_is_not_cut_short():
    claim = CLAIM | {"metric": "mean/clip_fraction"}
    rows = table({"new": {"mean/clip_fraction": [0.1, NEVER]}, "old": {"mean/clip_fraction": [0.3, 0.2]}})
    paired = pairs(claim, rows, "cpu", [0, 1])
    assert paired.differences == pytest.approx((-0.2,))
    assert paired.notes == ("no number for seed 1",)


def test_the_nearest_metric_of_the_stage_is_named():
    rows = table({"new": {"mean/clip_fraction": [0.1]}, "old": {"mean/clip_fraction": [0.1]}})
    paired = pairs(CLAIM | {"metric": "mean/clip_fractoin"}, rows, "cpu", [0])
    assert paired.notes == ("no mean/clip_fractoin at new/grpo; nearest: mean/clip_fraction",)
