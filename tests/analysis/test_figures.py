"""What the figures show: their numbers, order and marks, without rendering them."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from toy_run import ARMS, EDGES, OUTCOMES

from analysis.numbers import reach
from analysis.numbers.table import collect, final
from analysis.page import rows
from analysis.page import style as drawing
from analysis.results import before_after, effects
from analysis.statistics.intervals import interval, iqm
from analysis.training import effort, ratio_histograms
from analysis.verdicts import claims, forest
from recipes.spec.graph import Graph, Node
from recipes.spec.recipe import Recipe

TASK = "heldout"


@pytest.fixture(scope="module", autouse=True)
def style():
    with mpl.rc_context(drawing.STYLE):
        yield


@pytest.fixture(scope="module")
def table(run) -> pd.DataFrame:
    return collect(run)


@pytest.fixture(scope="module")
def numbers(table) -> pd.DataFrame:
    return final(table)


@pytest.fixture(scope="module")
def palette(run) -> dict[str, str]:
    return drawing.colours(run.recipe.arms("cpu"))


@pytest.fixture(scope="module")
def after(run) -> dict[str, list[float]]:
    """arm -> final accuracy of each seed, read from the evaluations themselves."""

    def read(arm: str, seed: int) -> float:
        node = Node(run.name, run.scale, arm, seed, "after", "eval")
        return json.loads(run.sentinel(node).read_text())["tasks"][TASK]["metrics"]["accuracy"]["value"]

    return {arm: [read(arm, seed) for seed in run.seeds] for arm in ARMS}


def changed(run, **keys):
    recipe = Recipe(run.name, run.spec | keys)
    return replace(run, graph=Graph({**run.graph.recipes, run.name: recipe}))


def test_arms_stand_by_what_they_gain_on_the_base_recipe(run, numbers, palette, after):
    found = effects.against_base(run, numbers, TASK, palette)
    gains = {arm: np.subtract(after[arm], after["base-recipe"]) for arm in ARMS[1:]}
    assert [row.name for row in found] == sorted(gains, key=lambda arm: -gains[arm].mean())
    for row in found:
        assert row.seeds == pytest.approx(gains[row.name])
        assert row.mean == pytest.approx(gains[row.name].mean())
        assert (row.low, row.high) == pytest.approx(interval(gains[row.name]))
        assert row.colour == palette[row.name]


def test_a_ladder_keeps_its_order_and_tells_each_step(run, numbers, palette, after):
    found = effects.ladder(run, numbers, TASK, palette)
    assert [row.name for row in found] == run.spec["ladder"]
    assert [row.mean for row in found] == pytest.approx([np.mean(after[arm]) for arm in run.spec["ladder"]])
    steps = [np.mean(after[b]) - np.mean(after[a]) for a, b in pairwise(run.spec["ladder"])]
    assert found[0].text.startswith(f"{np.mean(after['format-only']):.3f} [")
    for row, step in zip(found[1:], steps, strict=True):
        assert row.text.startswith(rows.signed(step) + " [")


def test_a_rung_that_was_not_run_is_stepped_over(run, numbers, palette, after):
    fewer = replace(run, arms=tuple(arm for arm in ARMS if arm != "no-format"))
    found = effects.ladder(fewer, numbers[numbers.arm != "no-format"], TASK, palette)
    assert [row.name for row in found] == ["format-only", "base-recipe", "longer-cap"]
    step = np.mean(after["base-recipe"]) - np.mean(after["format-only"])
    assert found[1].text.startswith(rows.signed(step))
    assert effects.ladder(changed(run, ladder=["no-such-arm", "random"]), numbers, TASK, palette) == []


def test_leave_one_out_is_against_the_full_recipe(run, numbers, palette, after):
    named = {"full": "longer-cap", "without": ["random", "base-recipe"]}
    found = effects.leave_one_out(changed(run, leave_one_out=named), numbers, TASK, palette)
    assert [row.name for row in found] == named["without"]
    assert found[1].seeds == pytest.approx(np.subtract(after["base-recipe"], after["longer-cap"]))
    assert (
        effects.leave_one_out(changed(run, leave_one_out={"full": "x", "without": []}), numbers, TASK, {})
        == []
    )


def test_models_that_seeds_share_count_once(run, numbers):
    at = ("base-recipe/after", "base-recipe/before", f"{TASK}/accuracy")
    shared = numbers.assign(source="one.json")
    assert len(rows.paired(numbers, *at)) == 3
    assert len(rows.paired(shared, *at)) == 1


def test_levels_are_those_of_the_evaluation(run, numbers, palette):
    found = effects.by_level(run, numbers, TASK, palette)
    assert [row.mean for row in found] == sorted((row.mean for row in found), reverse=True)
    here = numbers[(numbers.arm == "no-format") & (numbers.node == "after")]
    by_hand = [
        [
            here[(here.seed == seed) & (here.metric == f"{TASK}/accuracy/difficulty={d}")].value.item()
            for d in range(3, 9)
        ]
        for seed in run.seeds
    ]
    row = next(row for row in found if row.name == "no-format")
    assert (row.mean, row.low, row.high) == pytest.approx(iqm(by_hand))


def test_rows_are_drawn_from_top_to_bottom_with_their_numbers():
    found = [
        rows.of_differences("first", [0.1, 0.3], "#111111"),
        rows.of_differences("second", [-0.2], "#222222"),
    ]
    (axis,) = rows.draw(found, "d", zero=True).axes
    words = {text.get_text(): text.get_position()[1] for text in axis.texts}
    assert words["first"] < words["second"]
    assert axis.yaxis_inverted()
    assert "+0.200 [+0.100, +0.300]" in words
    assert f"{rows.MINUS}0.200" in words
    drawn = [line.get_xdata().tolist() for line in axis.lines if line.get_marker() == "D"]
    assert drawn == [[pytest.approx(0.2)], [pytest.approx(-0.2)]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([0.2, 0.5, 0.7, 0.9], [0.6, 0.7, 0.75, 0.8]),
        ([0.6, 0.7, 0.75, 0.8], [0.2, 0.5, 0.7, 0.9]),
        ([0.1, 0.2, 0.2, 0.3], [0.3, 0.2, 0.1, 0.2]),  # at a measured k
    ],
)
def test_the_crossing_is_where_the_lines_meet(before, after):
    ks = [1, 4, 16, 64]
    grid = np.linspace(0, 6, 100_001)
    gap = np.interp(grid, np.log2(ks), after) - np.interp(grid, np.log2(ks), before)
    brute = 2 ** grid[1:][np.sign(gap[1:]) != np.sign(gap[0])][0]
    assert before_after.crossing(ks, before, after) == pytest.approx(brute, rel=1e-3)


def test_curves_that_only_touch_do_not_cross():
    assert before_after.crossing([1, 2, 4], [0.2, 0.3, 1.0], [0.4, 0.3, 1.0]) is None


def test_a_crossing_is_marked_where_it_is_sure(run, numbers, palette):
    figure = before_after.pass_at_k(run, numbers, TASK, palette)
    panels = {axis.get_title("left"): axis for axis in figure.axes if axis.get_visible()}
    marked = {arm: [t.get_text() for t in axis.texts] for arm, axis in panels.items()}
    assert marked["base-recipe"] == []  # ahead at every k
    for arm in ARMS:
        curves = before_after.curves(run, numbers, f"{TASK}/pass@")
        at = before_after.crossing_of(curves, arm, run.ends)
        assert marked[arm] == ([f"k = {at:.1f}"] if at else [])
    narrow = {("a", "before"): [0.2, 0.9], ("a", "after"): [0.5, 0.6]}
    for width, sure in ((0.1, True), (0.2, False)):
        found = {
            key: {
                k: before_after.Mean(v, v - width, v + width, 5, "seeds")
                for k, v in zip((1, 16), values, strict=True)
            }
            for key, values in narrow.items()
        }
        assert (before_after.crossing_of(found, "a", ["before", "after"]) is not None) == sure


def test_a_trajectory_is_of_means_over_seeds(table):
    path = effort.trajectory(table[table.step.notna()], "base-recipe")
    assert len(path) == effort.COARSE
    assert path.index.is_monotonic_increasing
    before, _, end, _ = OUTCOMES["base-recipe"]
    assert path.accuracy.iloc[0] == pytest.approx(before, abs=0.08)
    assert path.accuracy.iloc[-1] == pytest.approx(end, abs=0.04)
    assert path.entropy.iloc[0] > path.entropy.iloc[-1]


def test_effort_is_accuracy_at_what_it_took(run, table, palette):
    logged = table[table.step.notna()]
    updates, samples = (effort.effort(logged, "longer-cap", unit).dropna() for unit in effort.UNITS)
    assert samples.index.to_list() == [256 * step for step in updates.index]  # twice the others' in toy_run
    rollouts = logged[
        (logged.arm == "longer-cap") & (logged.metric == "accuracy") & logged.step.between(16, 20)
    ]
    assert samples[256 * 20] == updates[20] == pytest.approx(rollouts.value.mean())
    assert not len(effort.effort(logged[logged.metric != "samples"], "random", "samples"))
    aimed = changed(run, claims=[{"metric": "updates_to/accuracy=0.5"}])
    figure = effort.accuracy_by_effort(aimed, table, palette)
    dotted = [
        line.get_ydata()[0] for axis in figure.axes for line in axis.lines if line.get_linestyle() == ":"
    ]
    assert dotted == [0.5, 0.5]


def test_a_seed_that_never_arrived_counts_with_its_budget(run, palette):
    level, arms = "0.5", ("base-recipe", "random", "longer-cap")
    measured = {"base-recipe": [10, 30], "random": [math.nan, math.nan], "longer-cap": [20, math.nan]}
    found = [
        {"arm": arm, "step": math.nan, "metric": metric, "value": value, "source": f"{arm}{seed}"}
        for arm in arms
        for seed in (0, 1)
        for metric, value in (
            (f"samples_to/accuracy={level}", measured[arm][seed]),
            ("samples_to/budget", 100.0),
        )
    ]
    shown = effort.effort_rows(pd.DataFrame(found), "samples", level, palette)
    assert [(row.name, row.mean) for row in shown] == [
        ("base-recipe", 20),
        ("longer-cap", 60),
        ("random", 100),
    ]
    assert shown[0].text == "20"
    assert shown[1].text == "at least 60 (1 of 2 never)"
    assert reach.levels([{"metric": f"samples_to/accuracy={level}"}]) == [level]


def test_ratios_are_added_up_and_drawn_as_shares(run, palette):
    one = ratio_histograms.read(replace(run, seeds=(0,)), "base-recipe")
    three = ratio_histograms.read(run, "base-recipe")
    assert three["count"].sum() == 3 * one["count"].sum() > 0
    assert [*one[one.level == "token"].sort_values("low").low, EDGES[-1]] == pytest.approx(EDGES)
    figure = ratio_histograms.draw(run, palette)
    axis = next(axis for axis in figure.axes if axis.get_title("left") == "base-recipe")
    assert axis.get_xscale() == "symlog"
    token, sequence = (patch.get_data() for patch in axis.patches)
    counts = one[one.level == "token"].sort_values("low")["count"]
    assert token.values == pytest.approx(counts / counts.sum())
    assert token.values.sum() == pytest.approx(1) == pytest.approx(sequence.values.sum())
    clip = sorted(line.get_xdata()[0] for line in axis.lines)
    assert clip == pytest.approx([math.log(0.8), math.log(1.2)])


def test_a_clip_range_wider_than_the_ratios_is_drawn_where_it_can_be(run, palette):
    stage = run.spec["stages"]["grpo"]
    wide = changed(run, stages={"grpo": stage | {"args": stage["args"] | {"epsilon": 10.0}}})
    (axis, *_) = ratio_histograms.draw(replace(wide, arms=ARMS[:1]), palette).axes
    assert [line.get_xdata()[0] for line in axis.lines] == pytest.approx([math.log(11)])


def test_without_ratios_there_is_no_figure(run, palette, tmp_path):
    assert ratio_histograms.draw(replace(run, root=tmp_path), palette) is None


def test_the_forest_has_a_row_a_tested_claim_in_the_order_of_the_recipe(run, numbers):
    verdicts = claims.judge_all(run.spec["claims"], numbers, run.scale, run.seeds)
    figure = forest.draw(verdicts)
    tested = [v for v in verdicts if v.n]
    assert [axis.get_title("left") for axis in figure.axes] == [v.id for v in tested]
    assert [axis.get_title("right") for axis in figure.axes] == [v.verdict for v in tested]
    for v, axis in zip(tested, figure.axes, strict=True):
        dots, diamond = (next(line for line in axis.lines if line.get_marker() == m) for m in "oD")
        assert dots.get_xdata() == pytest.approx(v.differences)
        assert diamond.get_xdata() == pytest.approx([v.mean])
        assert f"{v.id} " in forest.said(verdicts)


def test_a_long_claim_does_not_run_into_its_verdict(run, numbers):
    verdict = claims.judge_all(run.spec["claims"], numbers, run.scale, run.seeds)[0]
    figure = forest.draw([replace(verdict, id="a-very-long-name-" * 3, verdict="supported so far")])
    figure.canvas.draw()
    left, right = (
        title.get_window_extent() for title in (figure.axes[0]._left_title, figure.axes[0]._right_title)
    )
    assert left.x1 < right.x0
