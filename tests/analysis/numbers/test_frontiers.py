"""Reward at equal KL, read off checkpoints of one seed."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from toy_run import changed

from analysis import publish
from analysis.numbers import frontiers
from analysis.numbers.frontiers import Point, at
from analysis.numbers.recorded import recorded
from analysis.numbers.table import COLUMNS, collect, final, measured
from analysis.verdicts.decision import judge_run

points = st.lists(
    st.builds(Point, st.floats(0, 100).map(lambda x: round(x, 3)), st.floats(-10, 10)),
    min_size=1,
    max_size=8,
    unique_by=lambda point: point.kl,
)
PLACES = ["base-recipe/sft", "kl-strong/after", "base-recipe/after", "kl-none/after"]  # 0, 2.6, 9, 36 nats
GOLD = "heldout/gold_at_kl/4"
CLAIM = {
    "id": "at-equal-kl",
    "says": "At equal KL it makes no difference.",
    "source": "Fig. 9",
    "paper": "ours",
    "metric": GOLD,
    "of": "frontier/ppo",
    "against": "dpo/after",
    "against_metric": "heldout/gold",
    "direction": "equal",
    "margin": 0.5,
}


@given(points)
def test_it_passes_through_the_points(points):
    for point in points:
        assert at(points, point.kl) == (pytest.approx(point.score, abs=1e-12), (point,))


@given(points, st.floats(0, 1), st.floats(0, 1))
def test_between_two_points_it_is_monotone_and_linear_in_the_root(points, one, other):
    assume(len(points) > 1)
    left, right = sorted(points, key=lambda point: point.kl)[:2]
    low, high = sorted((one, other))
    kls = [(left.distance + share * (right.distance - left.distance)) ** 2 for share in (low, high)]
    (first, _), (second, _) = (at(points, min(max(kl, left.kl), right.kl)) for kl in kls)
    rise = right.score - left.score
    assert (second - first) * rise >= -1e-6
    assert first == pytest.approx(left.score + low * rise, abs=1e-5)


@given(points, st.floats(0, 120), st.randoms())
def test_the_order_of_the_points_does_not_matter(points, kl, random):
    value, between = at(points, kl)
    again, same = at(random.sample(points, len(points)), kl)
    assert again == value or (math.isnan(again) and math.isnan(value))
    assert set(same) == set(between)


@given(points, st.floats(0, 120))
def test_out_of_range_there_is_none_and_only_neighbours_have_a_part(points, kl):
    value, between = at(points, kl)
    inside = min(p.kl for p in points) <= kl <= max(p.kl for p in points)
    assert math.isnan(value) != inside
    if inside:
        assert 1 <= len(between) <= 2
        assert at(between, kl)[0] == value


def test_by_hand_and_with_a_root_where_a_straight_line_would_be_wrong():
    assert at([Point(1, 0.0), Point(9, 1.0)], 4)[0] == pytest.approx(0.5)
    assert at([Point(1, 0.0), Point(9, 1.0), Point(1, 2.0)], 1)[0] == 1.0  # places of one KL: their mean
    assert at([Point(-0.01, 3.0), Point(4, 1.0)], 1)[0] == pytest.approx(2.0)  # estimated below 0
    assert at([Point(-0.01, 3.0), Point(4, 1.0)], 0)[0] == 3.0


def with_frontier(run, **changes):
    return changed(run, frontiers={"ppo": PLACES}, claims=[CLAIM | changes])


def test_rows_of_the_table_lie_on_the_frontier_of_their_seed(rlhf):
    table = collect(with_frontier(rlhf))
    assert list(table.columns) == COLUMNS
    assert table.value.dtype == float
    assert np.issubdtype(table.seed.dtype, np.integer)
    read = measured(table, "frontier/ppo", GOLD)
    assert list(read.index) == [0, 1]
    for seed, row in read.iterrows():
        score, kl = (
            [measured(table, place, f"heldout/{name}").value[seed] for place in PLACES]
            for name in ("gold", "kl")
        )
        assert row.value == pytest.approx(np.interp(2.0, np.sqrt(kl), score))
        neighbours = [measured(table, place, "heldout/gold").source[seed] for place in PLACES[1:3]]
        assert row.source == " ".join(sorted(neighbours))
    own = table[table.arm == "frontier"]
    assert set(own.recipe) == {"toy_rlhf"}
    assert set(own.scale) == {"cpu"}
    assert own.step.isna().all()
    assert "frontier" not in set(collect(rlhf).arm)  # nothing asks for it


def test_an_old_task_is_read_at_the_forward_kl_of_the_new_one(rlhf, rlhf_table):
    metric = "heldout/accuracy_at_forward_kl/1"
    forward = rlhf_table[rlhf_table.metric == "heldout/kl"].assign(metric="new/forward_kl")
    forward = forward.assign(value=forward.value / 2)
    table = pd.concat([rlhf_table, forward], ignore_index=True)
    asked = with_frontier(rlhf, metric=metric)
    for reading in frontiers.readings(asked.document, table):
        score, kl = (
            [measured(table, place, name).value[reading.seed] for place in PLACES]
            for name in ("heldout/accuracy", "new/forward_kl")
        )
        order = np.argsort(kl)
        assert reading.value == pytest.approx(np.interp(1.0, np.sqrt(kl)[order], np.array(score)[order]))
    assert frontiers.readings(asked.document, rlhf_table) == []


def test_gates_ask_too_and_each_metric_is_read_once(rlhf):
    gates = {"far": {"metric": "heldout/proxy_at_kl/2.5", "of": "frontier/ppo", "against": "frontier/ppo",
                     "against_metric": GOLD}}  # fmt: skip
    table = collect(replace(changed(with_frontier(rlhf), gates=gates), seeds=(1,)))
    assert sorted(table[table.arm == "frontier"].metric) == [GOLD, "heldout/proxy_at_kl/2.5"]


def test_a_seed_that_lacks_a_place_has_no_number(rlhf, rlhf_table):
    """A look has stopped the arm at the end of the frontier, or an evaluation is not defined."""
    asked = with_frontier(rlhf)
    stopped = replace(asked, by_looks=dict.fromkeys(rlhf.arms, 2) | {"kl-none": 1})
    assert list(measured(collect(stopped), "frontier/ppo", GOLD).index) == [0]
    hole = rlhf_table.copy()
    at = (hole.arm == "base-recipe") & (hole.node == "sft") & (hole.metric == "heldout/kl")
    hole.loc[at & (hole.seed == 0), "value"] = math.nan
    assert [one.seed for one in frontiers.readings(asked.document, hole)] == [1]
    (verdict,) = judge_run(stopped, final(collect(stopped)))[-1]
    assert verdict.seeds == (0,)
    assert verdict.note.startswith("no number for seed 1")


def test_a_claim_is_judged_by_it(rlhf):
    asked = with_frontier(rlhf)
    numbers = final(collect(asked))
    (verdict,) = judge_run(asked, numbers)[-1]
    of, against = (
        measured(numbers, *side).value for side in (("frontier/ppo", GOLD), ("dpo/after", "heldout/gold"))
    )
    assert verdict.differences == pytest.approx((of - against).tolist())
    (beyond,) = judge_run(with_frontier(rlhf, metric="heldout/gold_at_kl/99"), numbers)[-1]
    assert beyond.word == "not tested"


def test_the_note_says_what_is_missing(rlhf):
    alone = replace(with_frontier(rlhf), arms=("base-recipe", "dpo"))  # as of the quickstart
    (verdict,) = judge_run(alone, final(collect(alone)))[-1]
    assert verdict.word == "not tested"
    assert verdict.note == f"no {GOLD} at frontier/ppo: no seed has a number at each of its places"
    asked = with_frontier(rlhf, metric="heldout/gold_at_kl/99")
    (verdict,) = judge_run(asked, final(collect(asked)))[-1]
    assert verdict.note == "no number for seed 0, 1"


def test_seeds_that_share_both_neighbours_count_once(rlhf):
    """The rest of the frontier, trained anew with each seed, has no part in the number."""
    asked = with_frontier(rlhf, against="")
    numbers = final(collect(asked))
    pinned = numbers[numbers.arm != "frontier"].copy()
    for place in PLACES[1:3]:
        arm, node = place.split("/")
        rows = (pinned.arm == arm) & (pinned.node == node)
        first = pinned[rows & (pinned.seed == 0)].set_index("metric")
        for column in ("value", "source"):
            pinned.loc[rows, column] = pinned[rows].metric.map(first[column]).to_numpy()
    again = pd.concat([pinned, frontiers.rows(asked.document, pinned)], ignore_index=True)
    (verdict,) = judge_run(asked, again)[-1]
    assert verdict.n == 1
    assert "2 seeds share 1 model" in verdict.note


def test_a_record_has_them_again(rlhf):
    """Though it keeps what arms share once, and nothing that was read off a frontier."""
    asked = with_frontier(rlhf)
    numbers = final(collect(asked))
    kept = publish.worth_keeping(numbers)
    again = recorded(asked, kept.drop(columns=["step", "source"]))
    assert "frontier" not in set(kept.arm)
    here, there = (measured(one, "frontier/ppo", GOLD) for one in (numbers, again))
    pd.testing.assert_frame_equal(here, there)
