"""The section: what is read of a run, its files and its page."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from toy_run import changed, draw_only

from analysis import report
from analysis.numbers.recorded import recorded
from analysis.numbers.table import collect, final
from analysis.publish import worth_keeping
from analysis.sensitivity.build import build
from analysis.sensitivity.rates import read_rates

ASKED = {"task": "heldout", "temperatures": [1.0, 0.0], "backends": ["hf", "lean"], "items": 4}
RIGHT = {  # checkpoint, backend, task -> share of right answers of each problem
    ("before", "hf", "own+own+t1"): [0.0, 0.5, 0.0, 0.5],
    ("before", "hf", "own+own+t0"): [0.0, 1.0, 0.0, 0.0],
    ("before", "lean", "own+own+t1"): [0.0, 0.5, 0.0, 0.5],
    ("before", "lean", "own+own+t0"): [0.0, 1.0, 0.0, 0.0],
    ("after", "hf", "own+own+t1"): [0.5, 1.0, 0.5, 0.5],
    ("after", "hf", "own+own+t0"): [1.0, 1.0, 1.0, 0.0],
    ("after", "lean", "own+own+t1"): [0.5, 1.0, 0.5, 0.0],
    ("after", "lean", "own+own+t0"): [1.0, 1.0, 1.0, 1.0],
}


@pytest.fixture
def asked(run, tmp_path):
    """The toy run, whose first arm was measured by two temperatures and backends."""
    shutil.copytree(run.root, tmp_path / "run")
    asked = replace(
        changed(run, evals=run.recipe.layers.content["evals"] | {"sensitivity": ASKED}), root=tmp_path / "run"
    )
    for (end, backend), rows in samples().items():
        node = asked.graph.owner(asked.evaluation("base-recipe", f"{end}_sensitivity_{backend}", 0))
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (asked.folder(node) / f"{node.name}.samples.jsonl").write_text(lines)
        tasks = {
            row["task"]: {"metrics": {"accuracy": {"value": 0.5, "low": 0.4, "high": 0.6}}} for row in rows
        }
        asked.sentinel(node).write_text(json.dumps({"checkpoint": node.name, "tasks": tasks}))
    return asked


def samples():
    found = {}
    for (end, backend, task), rates in RIGHT.items():
        count = 1 if task.endswith("t0") else 2
        for item, rate in reversed([*enumerate(rates)]):
            correct = [n < rate * count for n in range(count)]
            found.setdefault((end, backend), []).append({"task": task, "item": item, "correct": correct})
    return found


def test_rates_are_read_by_protocol_and_problem(asked):
    rates = read_rates(asked)
    for protocol, before, after in zip(rates.protocols, rates.before, rates.after, strict=True):
        assert list(before) == RIGHT["before", protocol.backend, protocol.task]
        assert list(after) == RIGHT["after", protocol.backend, protocol.task]
    assert len(rates.protocols) == 4


def test_what_is_not_measured_at_both_ends_is_left_out(asked):
    node = asked.evaluation("base-recipe", "after_sensitivity_lean", 0)
    path = asked.folder(node) / "after_sensitivity_lean.samples.jsonl"
    rows = [row for row in samples()["after", "lean"] if row["item"] != 2 and row["task"].endswith("t1")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rates = read_rates(asked)
    assert [(p.temperature, p.backend) for p in rates.protocols] == [(1.0, "hf"), (1.0, "lean"), (0.0, "hf")]
    assert rates.before.shape == (3, 3)  # problem 2 is not everywhere
    assert list(rates.after[0]) == [0.5, 1.0, 0.5]
    path.unlink()
    assert {p.backend for p in read_rates(asked).protocols} == {"hf"}


def test_a_run_that_asks_for_none_or_has_none_yet_has_no_section(run, tmp_path):
    assert build(run) is None
    asked = replace(
        changed(run, evals=run.recipe.layers.content["evals"] | {"sensitivity": ASKED}), root=tmp_path
    )
    assert build(asked) is None


@pytest.mark.slow
def test_its_files_and_its_page(asked, tmp_path, monkeypatch):
    draw_only({"gain-by-protocol"}, monkeypatch)
    one = replace(asked, arms=asked.arms[:1], seeds=asked.seeds[:1])
    out = tmp_path / "report"
    report.command(one, out.with_suffix(".html"), "report")
    frame = pd.read_csv(out / "sensitivity.csv")
    assert dict(zip(zip(frame.temperature, frame.backend, strict=True), frame.gain, strict=True)) == {
        (1.0, "hf"): 0.375, (1.0, "lean"): 0.25, (0.0, "hf"): 0.5, (0.0, "lean"): 0.75,
    }  # fmt: skip
    choices = pd.read_csv(out / "sensitivity_choices.csv", dtype={"level": str}).set_index(
        ["choice", "level"]
    )
    assert choices.more[("temperature", "0.0")] == pytest.approx((0.5 - 0.375 + 0.75 - 0.25) / 2)
    assert choices.more[("backend", "lean")] == pytest.approx((0.25 - 0.375 + 0.75 - 0.5) / 2)
    page = out.with_suffix(".html").read_text()
    assert '<a href="#sensitivity">' in page
    assert "the model of base-recipe, seed 0, before and after training" in page
    assert "between +0.250" in page
    assert "(own, own, T 1, lean)" in page
    assert "each model&#39;s best" in page
    assert "figure-gain-by-protocol" in page
    unasked = changed(
        one,
        evals={
            key: value for key, value in one.recipe.layers.content["evals"].items() if key != "sensitivity"
        },
    )
    report.command(unasked, out.with_suffix(".html"), "report")
    assert '<a href="#sensitivity">' not in out.with_suffix(".html").read_text()
    assert not (out / "sensitivity.csv").exists()


def test_the_other_numbers_and_a_record_of_before_are_what_they_were(asked, run, table):
    asked_for = collect(asked)
    others = asked_for[~asked_for.node.str.contains("_sensitivity_")].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, table)
    assert set(asked_for.node) - set(others.node) == {f"{end}_sensitivity_{b}" for end, b in samples()}
    assert not worth_keeping(final(asked_for)).node.str.contains("_sensitivity_").any()  # its table has them
    kept = worth_keeping(final(table)).drop(columns=["step", "source"])  # of a run before there was the key
    again, before = (recorded(one, kept) for one in (asked, run))
    pd.testing.assert_frame_equal(again, before)
    assert np.isfinite(again.value).any()
