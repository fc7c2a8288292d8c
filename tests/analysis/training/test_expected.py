"""The expected curve of a scale: a run passes, or the page says what to look at; and the band is drawn."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from toy_run import changed

from analysis.numbers.table import COLUMNS, collect
from analysis.page.palette import colours
from analysis.results import build, views
from analysis.training import expected, learning_curves, series

EXPECTED = {
    "of": "base-recipe/grpo",
    "metric": "accuracy",
    "curve": {"10": 0.2, "30": 0.5, "50": 0.7},
    "margin": 0.05,
    "source": "<b>hand-made</b>",
}
HEALTHY = pd.DataFrame(columns=["state", "check", "stage", "arm", "message"])
STEPS = np.arange(1, 61)
AS_EXPECTED = np.interp(STEPS, [10, 30, 50], [0.2, 0.5, 0.7])


def asking(run, **changes):
    scales = run.recipe.layers.content["scales"]
    return changed(run, scales={**scales, "cpu": scales["cpu"] | {"expected": EXPECTED | changes}})


def logged(*of_seeds, node="grpo", metric="accuracy", steps=STEPS):
    """A table of learning curves, one for each seed."""
    rows = [
        ["toy_zero", "cpu", "base-recipe", seed, node, float(step), metric, value, np.nan, np.nan, f"s{seed}"]
        for seed, values in enumerate(of_seeds)
        for step, value in zip(steps, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def outcome(run, table, health=HEALTHY, **changes):
    return expected.outcome(asking(run, **changes), table, health)


def test_a_run_within_the_band_passes(run):
    noise = np.random.default_rng(0).normal(0, 0.03, len(STEPS))
    got = outcome(run, logged(AS_EXPECTED + noise, AS_EXPECTED - noise))
    assert got.heading == "Pass"
    assert got.said == "Accuracy of base-recipe/grpo stays within 0.05 of the expected curve."


def test_a_run_that_ended_early_is_held_against_the_part_that_it_has(run):
    got = outcome(run, logged(AS_EXPECTED[:30], steps=STEPS[:30]))
    assert (got.heading, got.said.endswith("up to step 30.")) == ("Pass", True)


@pytest.mark.parametrize(
    ("curve", "side", "step", "cause"),
    [
        (np.full(60, 0.1), "0.55 below", 50, expected.FLAT),
        (np.where(STEPS < 20, AS_EXPECTED, 0.2), "0.45 below", 50, expected.FELL),
        (np.where(STEPS < 40, 0.0, AS_EXPECTED), "0.48 below", 30, expected.LATE),
        (AS_EXPECTED + np.where(STEPS < 20, 0.3, 0.2), "0.3 above", 10, expected.ABOVE),
    ],
)
def test_a_run_outside_says_where_and_what_to_look_at(run, curve, side, step, cause):
    got = outcome(run, logged(curve))
    assert got.heading == "Look here"
    assert f"lies {side} the expected curve near step {step}," in got.said
    assert got.said.endswith(cause)


def test_of_several_seeds_it_says_how_many(run):
    got = outcome(run, logged(AS_EXPECTED, AS_EXPECTED - 0.3, AS_EXPECTED))
    assert "with 1 of 3 seeds" in got.said


def test_a_health_check_that_explains_it_comes_first(run):
    warned = [
        ["warning", "entropy", "grpo", "base-recipe", "entropy fell"],
        ["warning", "truncation", "grpo", "base-recipe", "90% are cut at the cap"],
        ["error", "sampler_gap", "grpo", "base-recipe", "the sampler differs"],
        ["ok", "same_template", "grpo", "base-recipe", ""],
    ]
    health = pd.DataFrame(warned, columns=HEALTHY.columns)
    low = logged(AS_EXPECTED - 0.3)
    assert outcome(run, low, health).said.endswith("A health check says: the sampler differs.")
    for elsewhere in (health.assign(arm="random"), health.assign(stage="sft")):
        assert outcome(run, low, elsewhere).said.endswith(expected.FLAT)
    assert outcome(run, low, health[:1]).said.endswith(expected.FLAT)  # entropy explains nothing


@pytest.mark.parametrize(
    "table",
    [
        logged(),
        logged(AS_EXPECTED, metric="reward"),
        logged(AS_EXPECTED, node="other"),
        logged(AS_EXPECTED[:5], steps=STEPS[:5]),
    ],
)
def test_without_numbers_nothing_is_claimed(run, table):
    assert outcome(run, table).heading == "Not yet"


def test_a_recipe_that_expects_nothing_or_a_run_without_the_arm_has_no_outcome(run):
    assert expected.outcome(run, logged(AS_EXPECTED), HEALTHY) is None
    others = replace(asking(run), arms=("random",))
    assert expected.outcome(others, logged(AS_EXPECTED), HEALTHY) is None


def test_the_band_is_drawn_over_the_arm_where_its_stage_stands_in_the_joined_curve(run):
    accuracy = next(curve for curve in series.TRAINING if curve.name == "accuracy")
    earlier = pd.concat([logged(AS_EXPECTED, node="first"), logged(AS_EXPECTED)])
    reward = pd.concat([earlier, earlier.assign(metric="reward")])
    for table, shift in ((logged(AS_EXPECTED), 0), (reward, 60)):
        joined = learning_curves.of_rl(table) if shift else table
        bands = expected.bands(asking(run), "accuracy", joined)
        palette = colours(run.recipe.arms("cpu"))
        axis = learning_curves.draw(joined, accuracy, palette, bands=bands).axes[0]
        line = next(line for line in axis.lines if line.get_linestyle() == "--")
        assert line.get_xdata().tolist() == [10 + shift, 30 + shift, 50 + shift]
        assert line.get_ydata().tolist() == [0.2, 0.5, 0.7]
        (low, *_), (high, *_) = axis.collections[-1].get_paths()[0].get_extents().get_points().T[1:].T
        assert (low, high) == pytest.approx((0.15, 0.75))
    assert expected.bands(asking(run), "reward", reward) == {}
    assert expected.bands(asking(run), "accuracy", logged(AS_EXPECTED, node="first")) == {}


def test_the_page_says_it_first_and_escapes_the_source(quick, plain_page):
    asked = asking(quick)
    results = build(asked, collect(asked))
    page = plain_page(results)
    head = page.partition("</header>")[0]
    assert "<b>Look here.</b> Accuracy of base-recipe/grpo lies" in head
    assert "The expected curve is from &lt;b&gt;hand-made&lt;/b&gt;." in head
    plans = {plan.name: plan for plan in views(results)["training"].figures}
    assert "Dashed, with a band" in plans["accuracy"].caption
    assert "Dashed, with a band" not in plans["length"].caption
    assert "Look here." not in plain_page(build(quick, collect(quick)))
