import math
from dataclasses import replace

import pandas as pd
import pytest

from analysis.stage_ladder import over_training
from analysis.stage_ladder.steps import Climb, climb


def test_segments_follow_what_they_are_built_on(path):
    places = {(one.step, one.stage): (one.start, one.end) for one in path.segments}
    assert places == {
        ("Zero", "reason"): (0, 60),  # beside the cold start
        ("Dev1", "cold"): (0, 100),
        ("Dev2", "reason"): (100, 160),
        ("Dev3", "again"): (160, 360),  # from the base, but of data that Dev2 made
        ("R1", "all"): (360, 400),
    }
    assert path.chain == ("base", "Dev1", "Dev2", "Dev3", "R1")
    assert path.boundaries == [100, 160, 360]
    assert path.ends["base"] == 0


def test_the_steps_of_a_segment_count_from_its_start(path):
    last = next(one for one in path.segments if one.step == "R1")
    assert (last.rows.step.min(), last.rows.step.max()) == (361, 400)
    assert set(last.rows.seed) == {0, 1}
    assert not last.rows.duplicated(["seed", "step", "metric"]).any()


def test_a_seed_or_a_curve_that_is_missing(run, table, ladder):
    alone = climb(run, table[table.seed == 0], ladder)
    assert all(set(one.rows.seed) == {0} for one in alone.segments)
    without = climb(run, table[table.node != "reason"], ladder)
    assert {one.step for one in without.segments} == {"Dev1", "Dev3", "R1"}
    assert without.ends["Dev2"] == without.ends["Dev1"] == 100
    assert without.ends["Zero"] == 0


@pytest.fixture
def panels(run, path, numbers, ladder):
    return over_training.panels(run, path, numbers, ladder)


def test_held_out_is_of_the_first_task_that_has_it(run, numbers, ladder):
    task, means = over_training.held_out(run, numbers, ladder, "gold")
    assert task == "requests"
    assert list(means) == ["base", "Zero", "Dev1", "Dev2", "Dev3", "R1"]
    assert means["R1"] == pytest.approx(1.1, abs=0.03)
    of_stage = numbers[numbers.metric == "heldout/length"].assign(metric="last/kl")  # no task of that name
    assert over_training.held_out(run, pd.concat([numbers, of_stage]), ladder, "kl") == ("", {})


def test_a_panel_a_measure_with_boundaries(path, panels, ladder):
    figure = over_training.draw(path, panels, ladder)
    axes = figure.axes
    assert [axis.get_title(loc="left") for axis in axes] == [label for label, *_ in over_training.MEASURES]
    upright = [line.get_xdata()[0] for line in axes[1].lines if list(line.get_ydata()) == [0, 1]]
    assert upright == path.boundaries
    drawn = [line for line in axes[1].lines if len(line.get_xdata()) > 10]
    assert [(min(d.get_xdata()), max(d.get_xdata())) for d in drawn] == [(1, 60), (101, 160), (361, 400)]
    assert drawn[0].get_linestyle() == "--"
    text = over_training.caption(path, panels, ladder)
    assert "held out (heldout, requests)" in text
    assert "Dashed: Zero, a branch beside the others." in text
    assert "language consistency on heldout: base 0.4" in over_training.alt_text(panels)


def test_without_curves_there_is_no_figure(run, path, numbers, ladder):
    bare = Climb((), path.ends, path.chain)
    assert over_training.panels(run, bare, numbers, ladder) == []
    assert over_training.draw(bare, [], ladder) is None
    assert over_training.draw_by_domain(bare) is None


def test_rewards_by_domain_of_stages_that_have_several(path):
    found = over_training.by_domain(path)
    assert {reward: list(domains) for reward, domains in found.items()} == {
        "all": ["requests", "sums"],
        "accuracy": ["sums"],
        "language_consistency": ["requests", "sums"],
        "reward_model": ["requests"],
    }
    (part,) = found["reward_model"]["requests"]
    assert (part.step, set(part.rows.metric)) == ("R1", {"rewards/reward_model/requests/mean"})
    figure = over_training.draw_by_domain(path)
    assert len(figure.axes) == 4
    low, high = figure.axes[0].get_xlim()
    assert low < 360 < 400 < high < 410  # the stages that have domains alone
    assert math.isclose(360 - low, high - 400)


def test_one_domain_alone_is_not_drawn(path):
    kept = [
        replace(one, rows=one.rows[~one.rows.metric.str.contains("requests")]) for one in path.segments
    ]  # fmt: skip
    assert over_training.by_domain(replace(path, segments=tuple(kept))) == {}
