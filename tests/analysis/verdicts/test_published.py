"""Published numbers beside ours."""

from dataclasses import replace

from toy_run import changed

from analysis.numbers import means
from analysis.numbers.table import final
from analysis.verdicts import published


def test_the_papers_level_and_ours_share_no_row_but_at_the_papers_scale(run, table):
    entry = {"value": 15.6, "unit": "%", "source": "Table 2"}
    at = {"metric": "heldout/accuracy", "at": "base-recipe/before"}
    entries = [
        {"what": "measured", **entry, **at},
        {"what": "the same of ours", **entry, **at},
        {"what": "nothing here", **entry},
    ]
    both = published.beside(changed(run, published=entries), table, {})
    rows = published.apart(both).to_dict("records")
    assert [row["value"] for row in rows] == ["15.6 %"] * 3 + ["19.0 % [19.0, 19.0]"]
    assert [row["whose"] for row in rows] == ["paper"] * 3 + ["here"]
    assert rows[3]["what"] == "heldout/accuracy at base-recipe/before"
    made = published.build(changed(run, published=entries), table, {})
    assert made.to_dict("records") == rows
    paper = replace(changed(run, published=entries), scale="paper", arms=run.arms[:1])
    assert published.build(paper, table, {}).ours[0] == "19.0 % [19.0, 19.0]"
    assert not len(published.apart(both[:0]))


def test_published_numbers_and_ours_have_one_unit(run, table):
    at = {"source": "Table 2", "metric": "heldout/accuracy", "at": "base-recipe/before"}
    entries = [
        {"what": "in percent", "value": 15.6, "unit": "%", **at},
        {"what": "as a fraction", "value": 0.156, **at},
        {"what": "another task", "value": 71, "unit": "%", **at, "metric": "aime24/accuracy"},
        {"what": "another checkpoint", "value": 71, **at, "at": "base-recipe/middle"},
        {"what": "another arm", "value": 71, **at, "at": "none/after"},
        {"what": "another metric", "value": 71, **at, "metric": "heldout/pass@99"},
        {"what": "nothing", "value": 71, "source": "Table 2"},
        {"what": "another scale's", "value": 71, **at, "scales": ["paper"]},
    ]
    shown = published.beside(changed(run, published=entries), table, {})
    assert shown.published[0] == "15.6 %"
    assert list(shown.ours) == ["19.0 % [19.0, 19.0]", "0.190 [0.190, 0.190]", *5 * [means.DASH]]
    assert list(shown["our metric"][1:]) == [
        "heldout/accuracy at base-recipe/before",
        "aime24 is not evaluated at cpu scale",
        "heldout is not evaluated at cpu scale",
        "arm none was not run",
        "no heldout/pass@99 at base-recipe/before",
        "not measured here",
    ]


def test_published_preferences_have_ours_beside_them(rlhf, rlhf_table, preferred):
    entry = {"value": 71, "unit": "%", "source": "Table 1", "of": "kl-none/after", "against": "kl-none/sft"}
    entries = [
        {"what": "of two policies", **entry, "metric": "win_rate"},
        {"what": "at equal length", **entry, "metric": "length_controlled"},
        {"what": "of an arm that was not run", **entry, "of": "other/after", "metric": "win_rate"},
    ]
    shown = published.beside(changed(rlhf, published=entries), final(rlhf_table), preferred.tables)
    rates = preferred.tables["win_rates"].set_index(["of", "against"]).loc[("kl-none", "sft")]
    fair = preferred.tables["length_controlled"].set_index("of").loc["kl-none"]
    assert shown.ours[0] == f"{100 * rates.win_rate:.1f} % [{100 * rates.low:.1f}, {100 * rates.high:.1f}]"
    assert shown.ours[1].startswith(f"{100 * fair['gold/controlled']:.1f} %")
    assert shown.ours[2] == means.DASH
    assert list(shown["our metric"]) == [
        "win rate of kl-none/after against kl-none/sft",
        "length-controlled win rate of kl-none/after against kl-none/sft",
        "no win rate of other/after against kl-none/sft",
    ]
    without = published.beside(changed(rlhf, published=entries), final(rlhf_table), {})
    assert list(without.ours) == [means.DASH] * 3
