"""Entropy against accuracy, and what an accuracy cost."""

import math

import pandas as pd
import pytest
from toy_run import OUTCOMES, changed

from analysis.numbers.curve_metrics import named_in
from analysis.training import effort
from encore.recipe.metric_names import REACHED


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
    updates, samples, flops, seconds = (
        effort.effort(logged, "longer-cap", unit).dropna() for unit in effort.UNITS
    )
    assert samples.index.to_list() == [256 * step for step in updates.index]  # twice the others' in toy_run
    rollouts = logged[
        (logged.arm == "longer-cap") & (logged.metric == "accuracy") & logged.step.between(16, 20)
    ]
    assert samples[256 * 20] == updates[20] == pytest.approx(rollouts.value.mean())
    for cost in (flops, seconds):
        assert cost.index.is_monotonic_increasing
        assert cost.to_list() == updates.to_list()
    assert not len(effort.effort(logged[logged.metric != "samples"], "random", "samples"))
    aimed = changed(run, claims=[{"metric": "updates_to/accuracy=0.5", "of": "random/grpo"}])
    figure = effort.accuracy_by_effort(aimed, table, palette)
    dotted = [
        line.get_ydata()[0] for axis in figure.axes for line in axis.lines if line.get_linestyle() == ":"
    ]
    assert dotted == [0.5] * len(effort.UNITS)


def test_a_seed_that_never_arrived_counts_with_its_budget(run, palette):
    level, arms = "0.5", ("base-recipe", "random", "longer-cap")
    measured = {"base-recipe": [10, 30], "random": [math.nan, math.nan], "longer-cap": [20, math.nan]}
    logged_rows = [
        {"arm": arm, "step": math.nan, "metric": metric, "value": value, "source": f"{arm}{seed}"}
        for arm in arms
        for seed in (0, 1)
        for metric, value in (
            (f"samples_to/accuracy={level}", measured[arm][seed]),
            ("samples_to/budget", 100.0),
        )
    ]
    shown = effort.effort_rows(pd.DataFrame(logged_rows), "samples", level, palette)
    assert [(row.name, row.mean) for row in shown] == [
        ("base-recipe", 20),
        ("longer-cap", 60),
        ("random", 100),
    ]
    assert shown[0].text == "20"
    assert shown[1].text == "at least 60 (1 of 2 never)"
    assert named_in([f"samples_to/accuracy={level}"], REACHED) == [level]
