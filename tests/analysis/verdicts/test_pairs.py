"""What a claim is judged by where a run did not arrive."""

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_claims import comparison, judge_looks
from scipy import stats

from analysis.numbers.table import COLUMNS
from analysis.verdicts.claims import Verdict
from analysis.verdicts.pairs import pairs

CLAIM = {
    "id": "faster",
    "says": "It is faster.",
    "source": "Fig. 1",
    "paper": "ours",
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
    assert (verdict.word, verdict.note) == ("shown", "")


def test_a_run_that_never_arrived_cannot_help_its_own_arm():
    """Four fast seeds and one that gave up, late in which the rival arrived: not faster."""
    verdict = judge([50, 60, 55, 52, NEVER], [150, 160, 155, 153, 190])
    assert verdict.differences == (-100, -100, -100, -101, 10)
    assert verdict.word == "open"
    assert "new/grpo did not reach it with 1 of 5 seeds: the budget is counted" in verdict.note
    assert math.isnan(verdict.low)  # five seeds come to no look
    eight = judge([50, 60, 55, 52, 53, 54, 51, NEVER], [150, 160, 155, 153, 152, 151, 150, 190])
    assert (eight.word, eight.high) == ("open", math.inf)  # how late the run would have been nobody knows
    assert eight.low > -math.inf


def test_where_the_rival_never_arrived_the_least_lead_is_counted():
    verdict = judge([50, 60, 55, 52, 58, 51, 53, 57], [NEVER] * 8)
    assert verdict.differences == (-150, -140, -145, -148, -142, -149, -147, -143)
    assert verdict.word == "shown"
    assert "old/grpo did not reach it with 8 of 8 seeds" in verdict.note


def test_the_least_lead_does_not_contradict_a_larger_one():
    verdict = judge([190, 192, 191, 189, 190, 188, 190, 191], [NEVER] * 8, margin=50)
    assert (verdict.low, verdict.plain_low) == (-math.inf, -math.inf)
    assert -50 < verdict.high < 0
    assert verdict.word == "open"


def test_where_nobody_arrived_nothing_is_known():
    verdict = judge([50, 60, 55, 52, 58, NEVER, 51, 53], [100, 120, 105, 104, 111, NEVER, 101, 104])
    assert verdict.seeds == (0, 1, 2, 3, 4, 6, 7)
    assert "neither reached it with seed 5: left out" in verdict.note
    assert verdict.word == "shown"
    nobody = judge([NEVER] * 5, [NEVER] * 5, direction="equal", margin=10)
    assert (nobody.word, nobody.n) == ("not tested", 0)


def test_both_arms_have_the_smaller_budget():
    """The rival arrives with more samples than the other was ever given: nobody was faster."""
    claim = CLAIM | {"metric": "samples_to/accuracy=0.5"}
    paired = pairs(comparison(claim), race([NEVER, 900], [1500, 1500], 1000, 2000, unit="samples"), [0, 1])
    assert paired.seeds == (1,)
    assert paired.differences == (-100,)  # 900 less 1000
    assert (paired.at_least, paired.at_most) == (False, True)


def test_one_arm_alone_counts_its_budget():
    claim = {key: value for key, value in CLAIM.items() if key != "against"} | {"direction": "higher"}
    paired = pairs(comparison(claim), race([50, NEVER], [0, 0]), [0, 1])
    assert paired.differences == (50, 200)
    assert (paired.at_least, paired.at_most) == (True, False)


def test_another_metric_is_not_cut_short():
    claim = CLAIM | {"metric": "mean/clip_fraction"}
    rows = table({"new": {"mean/clip_fraction": [0.1, NEVER]}, "old": {"mean/clip_fraction": [0.3, 0.2]}})
    paired = pairs(comparison(claim), rows, [0, 1])
    assert paired.differences == pytest.approx((-0.2,))
    assert paired.notes == ("no number for seed 1",)


def test_the_nearest_metric_of_the_stage_is_named():
    rows = table({"new": {"mean/clip_fraction": [0.1]}, "old": {"mean/clip_fraction": [0.1]}})
    paired = pairs(comparison(CLAIM | {"metric": "mean/clip_fractoin"}), rows, [0])
    assert paired.notes == ("no mean/clip_fractoin at new/grpo; nearest: mean/clip_fraction",)


def measured_once(of: list[float], base: float, error: float = NEVER) -> pd.DataFrame:
    """An arm trained anew with each seed, and one base model for all, with this standard error of its own."""
    rows = []
    for seed, value in enumerate(of):
        where = ["toy", "cpu", "new", seed]
        rows.append([*where, "after", NEVER, "t/accuracy", value, NEVER, NEVER, f"new-{seed}"])
        ends = [base - NORMAL * error, base + NORMAL * error]
        rows.append([*where, "before", NEVER, "t/accuracy", base, *ends, "base"])
    return pd.DataFrame(rows, columns=COLUMNS)


NORMAL = stats.norm.isf(0.025)
GAIN = {
    "id": "gain",
    "says": "It gains.",
    "source": "Fig. 1",
    "paper": "ours",
    "metric": "t/accuracy",
    "direction": "higher",
}
GAIN |= {"of": "new/after", "against": "new/before", "margin": 0.05}


def gain(values: list[float], base: float, error: float = NEVER, **changes) -> Verdict:
    return judge_looks([GAIN | changes], measured_once(values, base, error), "cpu", range(len(values)))[-1][0]


@pytest.mark.parametrize("mirrored", [False, True])
def test_eight_differences_of_one_number_do_not_decide(mirrored):
    """The base solves 33 of 40 problems, every trained model all: that is one observation of the base."""
    changes = {"of": "new/before", "against": "new/after", "direction": "lower"} if mirrored else {}
    verdict = gain([1.0] * 8, 0.825, error=0.0574, **changes)
    assert (verdict.n, verdict.word) == (8, "open")
    assert abs(verdict.estimate) == pytest.approx(0.175)
    plain, decisive = verdict.plain_high - verdict.plain_low, verdict.high - verdict.low
    assert plain / 2 == pytest.approx(stats.t.isf(0.025, 7) * 0.0574, rel=1e-3)
    assert decisive / 2 == pytest.approx(stats.t.isf((1 - verdict.level) / 2, 7) * 0.0574, rel=1e-3)
    assert verdict.note.split("; ")[0].endswith(
        "is one run for all 8 seeds: its own standard error, 0.0574, counts once"
    )


@settings(max_examples=30)  # each judges two tables
@given(st.lists(st.floats(0, 1), min_size=8, max_size=8, unique=True), st.floats(0.001, 0.2))
def test_the_error_of_a_run_that_all_seeds_share_does_not_shrink_with_seeds(of, error):
    exact, uncertain = gain(of, 0.2, error=1e-9), gain(of, 0.2, error=error)
    assert uncertain.estimate == pytest.approx(exact.estimate)
    assert uncertain.estimate - uncertain.low >= NORMAL * error * (1 - 1e-9)
    assert uncertain.high - uncertain.low >= (exact.high - exact.low) * (1 - 1e-9)
    assert uncertain.detectable > exact.detectable
    assert uncertain.word == "open" or exact.word != "open"  # never nearer to a decision


@pytest.mark.parametrize("error", [NEVER, 0.0])
def test_where_nothing_tells_the_error_of_the_one_run_the_seeds_count_once(error):
    verdict = gain([1.0] * 8, 0.825, error=error)
    assert (verdict.n, verdict.decided) == (1, False)
    assert "new/before is one run for all 8 seeds, of unknown error: they count once" in verdict.note


def test_an_arm_of_two_runs_counts_twice_on_either_side():
    rows = measured_once([0.5, 0.6, 0.7, 0.8], 0.2, error=0.01)
    rows.loc[rows.node == "before", "source"] = ["base-0", "base-1", "base-0", "base-1"]
    for claim in (GAIN, GAIN | {"of": "new/before", "against": "new/after"}):
        paired = pairs(comparison(claim), rows, range(4))
        assert (paired.seeds, paired.error) == ((0, 1), 0)
        assert "4 seeds share 2 models" in paired.notes


RUNS = st.lists(st.integers(0, 5), min_size=8, max_size=8)  # which run each seed has


@given(RUNS, RUNS)
def test_there_are_no_more_differences_than_runs_on_a_side(of, against):
    rows = measured_once([0.1 * seed for seed in range(8)], 0.2, error=0.01)
    rows.loc[rows.node == "after", "source"] = [f"new-{run}" for run in of]
    rows.loc[rows.node == "before", "source"] = [f"base-{run}" for run in against]
    paired = pairs(comparison(GAIN), rows, range(8))
    runs = sorted({len(set(of)), len(set(against))})
    assert len(paired.seeds) <= runs[-1]
    assert runs[0] == 1 or len(paired.seeds) <= runs[0]
