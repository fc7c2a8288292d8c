"""Verdicts as a reader sees them."""

from analysis.numbers import means
from analysis.verdicts import claims, claims_table, summary


def test_every_verdict_is_shown_with_what_it_could_have_seen(run, table):
    verdicts = claims.judge_all(run.spec["claims"], table, run.scale, run.seeds)
    shown = claims_table.verdicts_shown(verdicts).set_index("claim")
    assert shown.detectable["rl-lifts-accuracy"] == means.number(verdicts[0].detectable)
    assert 0 < float(shown.detectable["rl-lifts-accuracy"]) < 0.5
    assert shown["p by Holm"]["rl-lifts-accuracy"].startswith(("0.0", "< 0.001"))
    assert list(shown.loc["aime-majority", ["p by Holm", "detectable"]]) == [means.DASH] * 2
    assert f"detectable {shown.detectable['rl-lifts-accuracy']}, 3 seeds" in summary.foremost(verdicts)
