"""What each arm is worth: rows of forests and ladders."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from toy_run import ARMS, changed

from analysis.arms import effects
from analysis.page import interval_rows
from analysis.statistics.intervals import interval, iqm
from encore.recipe.graph import Node

TASK = "heldout"


@pytest.fixture(scope="module")
def after(run) -> dict[str, list[float]]:
    """arm -> final accuracy of each seed, read from the evaluations themselves."""

    def read(arm: str, seed: int) -> float:
        node = Node(run.name, run.scale, arm, seed, "after", "eval")
        return json.loads(run.sentinel(node).read_text())["tasks"][TASK]["metrics"]["accuracy"]["value"]

    return {arm: [read(arm, seed) for seed in run.seeds] for arm in ARMS}


def test_arms_stand_by_what_they_gain_on_the_base_recipe(run, numbers, palette, after):
    shown = effects.against_base(run, numbers, TASK, palette)
    gains = {arm: np.subtract(after[arm], after["base-recipe"]) for arm in ARMS[1:]}
    assert [row.name for row in shown] == sorted(gains, key=lambda arm: -gains[arm].mean())
    for row in shown:
        assert row.seeds == pytest.approx(gains[row.name])
        assert row.mean == pytest.approx(gains[row.name].mean())
        assert (row.low, row.high) == pytest.approx(interval(gains[row.name]))
        assert row.colour == palette[row.name]


def test_every_arm_has_what_it_was_before_and_what_it_is_after(run, numbers, palette, after):
    rows = effects.before_after(run, numbers, TASK, palette)
    assert [row.name for row in rows] == list(ARMS)
    for row in rows:
        assert row.mean == pytest.approx(np.mean(after[row.name]))
        before = 0.02 if row.name == "no-cot-base" else 0.19
        assert row.before == pytest.approx(before)
        assert row.text.startswith(f"{before:.3f} \N{RIGHTWARDS ARROW} {row.mean:.3f} [")
    gone = numbers[(numbers.node != "before") | (numbers.arm != "random")]
    (row,) = (row for row in effects.before_after(run, gone, TASK, palette) if row.name == "random")
    assert np.isnan(row.before)
    assert row.text.startswith(f"{row.mean:.3f} [")


def test_a_ladder_keeps_its_order_and_tells_each_step(run, numbers, palette, after):
    shown = effects.ladder(run, numbers, TASK, palette)
    assert [row.name for row in shown] == list(run.document.ladder)
    assert [row.mean for row in shown] == pytest.approx(
        [np.mean(after[arm]) for arm in list(run.document.ladder)]
    )
    steps = [np.mean(after[b]) - np.mean(after[a]) for a, b in pairwise(list(run.document.ladder))]
    assert shown[0].text.startswith(f"{np.mean(after['format-only']):.3f} [")
    for row, step in zip(shown[1:], steps, strict=True):
        assert row.text.startswith(interval_rows.signed(step) + " [")


def test_a_rung_that_was_not_run_is_stepped_over(run, numbers, palette, after):
    fewer = replace(run, arms=tuple(arm for arm in ARMS if arm != "no-format"))
    shown = effects.ladder(fewer, numbers[numbers.arm != "no-format"], TASK, palette)
    assert [row.name for row in shown] == ["format-only", "base-recipe", "longer-cap"]
    step = np.mean(after["base-recipe"]) - np.mean(after["format-only"])
    assert shown[1].text.startswith(interval_rows.signed(step))
    assert effects.ladder(changed(run, ladder=["no-such-arm", "random"]), numbers, TASK, palette) == []


def test_leave_one_out_is_against_the_full_recipe(run, numbers, palette, after):
    named = {"full": "longer-cap", "without": ["random", "base-recipe"]}
    shown = effects.leave_one_out(changed(run, leave_one_out=named), numbers, TASK, palette)
    assert [row.name for row in shown] == named["without"]
    assert shown[1].seeds == pytest.approx(np.subtract(after["base-recipe"], after["longer-cap"]))
    assert effects.leave_one_out(changed(run, leave_one_out=None), numbers, TASK, {}) == []


def test_levels_are_those_of_the_evaluation(run, numbers, palette):
    shown = effects.by_level(run, numbers, TASK, palette)
    assert [row.mean for row in shown] == sorted((row.mean for row in shown), reverse=True)
    here = numbers[(numbers.arm == "no-format") & (numbers.node == "after")]
    by_hand = [
        [
            here[(here.seed == seed) & (here.metric == f"{TASK}/accuracy/difficulty={d}")].value.item()
            for d in range(3, 9)
        ]
        for seed in run.seeds
    ]
    row = next(row for row in shown if row.name == "no-format")
    assert (row.mean, row.low, row.high) == pytest.approx(iqm(by_hand))
