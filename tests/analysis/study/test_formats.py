"""Logs of each form, as the tools themselves write them, become the same rows."""

import csv
import json
import math
from contextlib import suppress

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import TrainerState

from analysis.study import formats
from encore.errors import UserError
from encore.runtime import curves

CURVE = {1: 0.1, 2: 0.25, 3: 0.5}
NAME = "train/reward"


def as_csv(path):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", NAME, "note", "seldom"])
        writer.writerows([step, value, "x", "" if step < 3 else 7] for step, value in CURVE.items())


def as_curve(path):
    path.write_text(curves.text([(step, NAME, value) for step, value in CURVE.items()]), encoding="utf-8")


def as_json_lines(path):
    entries = [
        {"global_step": step, "train": {"reward": value}, "done": True} for step, value in CURVE.items()
    ]
    path.write_text("\n".join(map(json.dumps, entries)) + "\n", encoding="utf-8")


def as_trainer_state(path):
    history = [{"step": step, NAME: value, "epoch": step / 3} for step, value in CURVE.items()]
    TrainerState(log_history=[*history, {"step": 3, "train_runtime": 1.0}]).save_to_json(str(path))


def as_console_of_verl(path):
    """Its formats of numbers: of its releases, and of numpy."""
    shown = [f"{CURVE[1]:.3f}", repr(CURVE[2]), f"np.float64({CURVE[3]})"]
    lines = [
        f"(TaskRunner pid=7) step:{step} - {NAME}:{number} - actor/lr:1e-06 - note:x"
        for step, number in zip(CURVE, shown, strict=True)
    ]
    path.write_text("a, b\n" + "\n".join([*lines, "done, at last"]), encoding="utf-8")


def as_events(path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(path.parent) as writer:
        for step, value in CURVE.items():
            writer.add_scalar(NAME, value, step)
    (written,) = path.parent.glob("events.out.tfevents*")
    return written


@pytest.mark.parametrize(
    "write", [as_csv, as_curve, as_json_lines, as_trainer_state, as_console_of_verl, as_events]
)
def test_the_curve_is_read_as_it_was_written(write, tmp_path):
    path = tmp_path / "log"
    rows = formats.read_log(write(path) or path, None)
    own = rows[rows.metric == NAME].set_index("step").value
    assert own.to_dict() == pytest.approx(CURVE)
    assert set(rows.columns) >= set(formats.COLUMNS)


def test_results_of_lm_eval_have_the_interval_of_their_standard_error(tmp_path):
    metrics = {"alias": "gsm8k", "exact_match,strict-match": 0.5, "exact_match_stderr,strict-match": 0.1}
    metrics |= {"acc,none": 0.25, "acc_stderr,none": "N/A"}
    (tmp_path / "results.json").write_text(json.dumps({"results": {"gsm8k": metrics}}), encoding="utf-8")
    rows = formats.read_log(tmp_path / "results.json", None).set_index("metric")
    strict = rows.loc["gsm8k/exact_match,strict-match"]
    assert (strict.value, strict.low, strict.high) == pytest.approx((0.5, 0.304, 0.696), abs=1e-4)
    assert rows.loc["gsm8k/acc"].value == 0.25
    assert math.isnan(rows.loc["gsm8k/acc"].low)
    assert len(rows) == 2


def test_an_empty_cell_was_not_logged_and_nan_was(tmp_path):
    (tmp_path / "log.csv").write_text("step,loss,reward\n1,,0.5\n2,nan,0.6\n", encoding="utf-8")
    rows = formats.read_log(tmp_path / "log.csv", None)
    assert rows[rows.metric == "loss"].step.tolist() == [2]
    assert rows[rows.metric == "loss"].value.isna().all()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\xff\xfe\x00binary", "not a text"),
        (b"a,b\n1,2\n", "no column of the step"),
        (b"step,reward\nten,1\n", "column step: expected numbers, got 'ten'"),
        (b'{"step": 1}\nno json\n', "line 2: expected a JSON object"),
        (b'{"loss": 1}\n', "no column of the step"),
        (b'"a"b"c\n1"', "no column of the step"),
        (b"[" * 100_000, "no column of the step"),
        (b"<!DOCTYPE html><script>alert(1)</script>\n<p>step,reward</p>", "no column of the step"),
        (b'{"a":' * 100_000, "expected a JSON object"),
    ],
)
def test_what_is_no_log_is_told_in_one_line(content, said, tmp_path):
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(UserError) as error:
        formats.read_log(tmp_path / "log", None)
    assert said in str(error.value)
    assert len(error.value.lines) == 1


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "LARGEST", 10)
    as_csv(tmp_path / "log.csv")
    with pytest.raises(UserError, match="a log of more than 10 is not read"):
        formats.read_log(tmp_path / "log.csv", None)


@given(st.text())
def test_no_text_raises_anything_else(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_text(text, encoding="utf-8", errors="replace")
    with suppress(UserError):
        assert isinstance(formats.read_log(path, None), pd.DataFrame)
