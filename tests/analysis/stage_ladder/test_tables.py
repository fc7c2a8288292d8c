"""The funnel, and what each step cost."""

import pytest
import toy_ladder as toy

from analysis.provenance.jobs import jobs
from analysis.stage_ladder import funnel
from analysis.stage_ladder.stage_cost import stage_cost, stage_cost_shown


@pytest.fixture(scope="module")
def sifted(run, table, ladder):
    return funnel.funnel(run, table, ladder)


def test_the_funnel_is_in_the_order_of_its_filters(sifted):
    assert list(sifted.passed) == list(toy.FUNNEL)  # in metrics.json they are in alphabetical order
    assert set(sifted.step + "/" + sifted.stage) == {"Dev3/sift"}


def test_the_funnel_is_the_mean_of_the_seeds(sifted):
    assert list(sifted.completions) == [n + 5 for n in toy.FUNNEL.values()]
    assert sifted.share.iloc[2] == pytest.approx(2405 / 4005)
    shown = funnel.funnel_shown(sifted)
    assert list(shown.iloc[3]) == ["Dev3", "sift", "language consistency", "2,105", "52.6%", "42.0%"]


def test_the_funnel_drawn(sifted):
    figure = funnel.draw(sifted)
    (axis,) = figure.axes
    assert [round(bar.get_width(), 6) for bar in axis.patches] == [round(x, 6) for x in sifted.share]
    assert [label.get_text() for label in axis.get_yticklabels()][:3] == ["sampled", "ended", "right"]
    assert funnel.draw(sifted[:0]) is None


def test_a_step_costs_its_own_stages_and_all_it_is_made_of(run, ladder):
    frame = stage_cost(run, ladder, jobs(run)).set_index("step")
    assert dict(frame.stages) == {
        "base": "tiny_lm/pretrain",
        "Zero": "reason",
        "Dev1": "cold",
        "Dev2": "reason",
        "Dev3": "sift, again",
        "R1": "all",
    }
    assert frame.wall_s["Dev3"] == pytest.approx(20 + 15 + 2 * 0.5)
    assert frame.wall_s_in_all["R1"] == pytest.approx(
        100 + 10 + 60 + 20 + 15 + 40 + 5 * 0.5
    )  # pretraining once
    assert frame.wall_s_in_all["Zero"] == pytest.approx(100 + 60.5)
    assert frame.tokens["Dev3"] == 2000
    assert frame.flops_in_all["R1"] == pytest.approx(6e9)


def test_a_seed_without_a_record_is_left_out(run, ladder):
    records = jobs(run)
    some = records[(records.stage != "sift") | (records.seed != 1)]
    frame = stage_cost(run, ladder, some).set_index("step")
    assert dict(frame.seeds) == {"base": 2, "Zero": 2, "Dev1": 2, "Dev2": 2, "Dev3": 1, "R1": 1}
    assert frame.wall_s["Dev3"] == 35
    none = stage_cost(run, ladder, records[records.stage != "tiny_lm/pretrain"])
    assert not len(none)


def test_the_cost_shown(run, ladder):
    shown = stage_cost_shown(stage_cost(run, ladder, jobs(run))).set_index("step")
    assert shown["wall-clock in all"]["R1"] == "4 min 08 s"
    assert shown["FLOPs (estimate)"]["Dev3"] == "2.0e09"
