"""Verdicts and looks as a reader sees them."""

from judged_claims import CLAIM, judge_looks, table

from analysis.numbers import means
from analysis.verdicts import claims_table, summary
from analysis.verdicts.decision import judge_run


def test_every_verdict_is_shown_with_what_it_could_have_seen(run, numbers):
    verdicts = judge_run(run, numbers)[-1]
    shown = claims_table.verdicts_shown(verdicts).set_index("claim")
    assert shown.detectable["rl-lifts-accuracy"] == means.number(verdicts[0].detectable)
    assert 0 < float(shown.detectable["rl-lifts-accuracy"]) < 0.5
    assert shown.verdict["rl-lifts-accuracy"].endswith("(3 of 8 seeds)")
    assert list(shown.loc["aime-majority", ["level", "detectable"]]) == [means.DASH] * 2
    assert f"detectable {shown.detectable['rl-lifts-accuracy']}, 3 seeds" in summary.foremost(verdicts, {})


def test_every_look_that_was_taken_is_listed():
    """One claim is clear at the first look, another never, and one has no numbers after the first."""
    seeds, stated = (
        20,
        [CLAIM, CLAIM | {"id": "open", "margin": 0.6}, CLAIM | {"id": "none", "of": "x/after"}],
    )
    rows = table([0.6 + (0.1 if i % 2 else -0.1) for i in range(seeds)], [0.0] * seeds)
    frame = claims_table.looks(judge_looks(stated, rows, "cpu", range(seeds)))
    looks = [["gain", 8, 8], ["open", 8, 8], ["open", 16, 16]]  # what is decided is not looked at again
    assert frame[["claim", "look", "n"]].values.tolist() == looks
    shown = claims_table.looks_shown(frame, {"gain": "heldout/accuracy", "open": "heldout/accuracy"})
    assert shown.look.tolist() == ["1: 8 seeds", "1: 8 seeds", "2: 16 seeds"]
    assert shown.verdict.tolist() == ["shown", "open", "open"]
    assert shown["difference d"][0].startswith("0.600 [")
    stopped = claims_table.looks(judge_looks([CLAIM], rows[rows.seed < 8], "cpu", range(16)))
    assert stopped.look.tolist() == [8]
