"""The curves that a reader draws anew: their axes over several stages, their values, and what is left out."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

from analysis.training import interactive

COLUMNS = ["arm", "seed", "node", "step", "metric", "value"]
RUN = SimpleNamespace(seeds=(), arms=("one", "two", "silent"))
PALETTE = {"one": "#000001", "two": "#000002", "silent": "#000003"}


def curve(arm: str, node: str, seed: int, values: list[float], samples: int = 8) -> list[tuple]:
    """Return the rows of a stage that logs reward, entropy and samples at every step from 1 on."""
    rows = []
    for step, value in enumerate(values, 1):
        rows += [
            (arm, seed, node, float(step), metric, number)
            for metric, number in (("reward", value), ("entropy", value / 2), ("samples", samples * step))
        ]
    return rows


def jobs(*rows: tuple[str, int, str, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["arm", "seed", "stage", "wall_s", "flops"])


def read(rows: list[tuple], of_jobs: pd.DataFrame) -> tuple[list[dict], dict[str, list]]:
    text = interactive.data(RUN, pd.DataFrame(rows, columns=COLUMNS), of_jobs, PALETTE)
    (content,) = json.loads(text)
    return content["arms"], {chart["label"]: chart["lines"] for chart in content["charts"]}


def test_stages_are_joined_on_every_axis():
    rows = curve("one", "first", 0, [1, 2]) + curve("one", "second", 0, [3, 4, 5])
    spent = jobs(("one", 0, "first", 10.0, 1e9), ("one", 0, "second", 60.0, 2e9))
    (arm,), charts = read(rows, spent)
    assert arm["name"] == "one"
    assert arm["colour"] == "#000001"
    assert arm["axes"]["updates"] == [1, 2, 3, 4, 5]
    assert arm["axes"]["samples"] == [8, 16, 24, 32, 40]
    assert arm["axes"]["seconds (median job)"] == [
        5,
        10,
        30,
        50,
        70,
    ]  # 5 a step in the first, 20 in the second
    assert arm["axes"]["FLOP (estimate)"] == pytest.approx([0.5e9, 1e9, 1.67e9, 2.33e9, 3e9])
    assert charts["Reward"][0]["mean"] == [1, 2, 3, 4, 5]


def test_a_job_that_was_paused_does_not_stretch_the_axis():
    rows = [row for seed in range(3) for row in curve("one", "grpo", seed, [1, 2])]
    spent = jobs(*(("one", seed, "grpo", wall, 1e9) for seed, wall in enumerate((10.0, 12.0, 8000.0))))
    (arm,), _ = read(rows, spent)
    assert arm["axes"]["seconds (median job)"] == [6, 12]


def test_a_line_has_the_mean_and_the_range_of_its_seeds():
    rows = curve("one", "grpo", 0, [1, 2]) + curve("one", "grpo", 1, [3, 6]) + curve("two", "grpo", 0, [0, 0])
    spent = jobs(("one", 0, "grpo", 10.0, 1e9), ("one", 1, "grpo", 30.0, 3e9), ("two", 0, "grpo", 1.0, 1e9))
    arms, charts = read(rows, spent)
    assert [arm["name"] for arm in arms] == ["one", "two"]  # the arm that logged nothing is left out
    assert charts["Reward"][0] == {"mean": [2, 4], "low": [1, 2], "high": [3, 6]}
    assert charts["Reward"][1]["high"] == [0, 0]
    assert arms[0]["axes"]["seconds (median job)"] == [10, 20]  # the median of both seeds
    assert "Accuracy of training rollouts" not in charts


def test_an_axis_without_numbers_is_left_out():
    rows = [row for row in curve("one", "grpo", 0, [1, 2]) if row[4] != "samples"]
    (arm,), _ = read(rows, jobs(("one", 0, "grpo", 10.0, float("nan"))))
    assert [*arm["axes"]] == ["updates", "seconds (median job)"]


def test_without_a_curve_there_is_nothing_to_draw():
    assert interactive.data(RUN, pd.DataFrame([], columns=COLUMNS), jobs(), PALETTE) == ""
