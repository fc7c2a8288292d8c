"""Claims whose mechanism was not at work, and seeds that decide nothing."""

import pytest
from hypothesis import strategies as st
from judged_claims import CLAIM, flat, judge_looks, table
from toy_run import changed

from analysis.verdicts import claims
from analysis.verdicts.decision import judge_run
from encore.errors import UserError

margin = st.floats(0, 1).map(lambda x: round(x, 3))
# 0.1 +- 0.02: clear of a margin of 0.05 at once
CLEAR = [0.1, 0.12, 0.08, 0.11, 0.09, 0.1, 0.13, 0.07]


GATED = CLAIM | {"needs": "clip_cuts >= 0.02"}
GATES = {"clip_cuts": {"metric": "heldout/accuracy", "of": "base-recipe/before"}}
WHERE = "heldout/accuracy: base-recipe/before"


def test_a_claim_whose_precondition_is_absent_is_not_tested():
    def verdict(cut: float) -> claims.Verdict:
        rows = table([d + 0.5 for d in CLEAR], [cut] * 8)
        return judge_looks([GATED], rows, "cpu", range(8), GATES)[-1][0]

    assert verdict(0.03).word == "shown"
    absent = verdict(0.005)
    assert (absent.word, absent.n, absent.decided) == ("not tested", 0, True)
    assert absent.note == f"a precondition is absent ({WHERE}: measured 0.005, needed at least 0.02)"


def test_a_precondition_that_was_not_measured_is_not_met():
    rows = table(CLEAR, [0.0] * 8)
    gates = {"clip_cuts": {"metric": "mean/clip", "of": "base-recipe/before"}}
    verdict = judge_looks([GATED], rows, "cpu", range(8), gates)[-1][0]
    assert verdict.word == "not tested"
    words = "a precondition was not measured (mean/clip: base-recipe/before: needed at least 0.02): no mean/"
    assert verdict.note.startswith(words)


def test_a_precondition_is_told_in_the_words_of_its_gate():
    gate = GATES["clip_cuts"] | {"about": "share of tokens that the clip cuts", "target": 0.5}
    claim = CLAIM | {"needs": "clip_cuts within 10%"}
    verdict = judge_looks([claim], table(CLEAR, [0.0] * 8), "cpu", range(8), {"clip_cuts": gate})[-1][0]
    assert verdict.note == (
        "a precondition is absent (share of tokens that the clip cuts: measured 0, needed within 10% of 0.5)"
    )


def test_a_seed_that_chose_a_dial_is_refused(run, numbers):
    dialled = changed(run, dials=[{"what": "rate", "seeds": [1, 1000], "outcome": "3e-4"}])
    with pytest.raises(UserError, match=r"recipes/toy_zero.yaml: dials: seed 1 was used to choose them"):
        judge_run(dialled, numbers)
    apart = changed(run, dials=[{"what": "rate", "seeds": [1000, 1001, 1002], "outcome": "3e-4"}])
    assert [v.id for v in judge_run(apart, numbers)[-1]] == [
        claim["id"] for claim in flat(run.recipe.layers.content)
    ]
