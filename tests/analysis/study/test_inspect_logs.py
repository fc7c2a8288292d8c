"""Logs of inspect: scores have their intervals, and an evaluation that did not end well is refused."""

import json
import math
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.study import document, formats, numbers
from encore.errors import UserError

# two epochs of four sums by inspect_ai 0.3.285 with its mock model: `inspect log dump --header-only`
LOG = Path(__file__).parent / "inspect_sums.json"
HEADER = json.loads(LOG.read_text(encoding="utf-8"))


def rows_of(log, folder):
    path = folder / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    return formats.read_log(path, None)


def test_each_score_has_the_interval_of_its_standard_error():
    rows = formats.read_log(LOG, None).set_index("metric")
    assert {*rows.index} == {
        f"sums/{score}/accuracy{joined}" for score in ("match", "includes") for joined in ("", ",at_least_2")
    }
    accuracy = rows.loc["sums/match/accuracy"]
    assert (accuracy.value, accuracy.low, accuracy.high) == pytest.approx((0.625, 0.38, 0.87), abs=1e-3)
    assert rows.loc["sums/match/accuracy,at_least_2"].value == 0.25
    assert rows.step.isna().all()


def test_the_standard_error_is_that_of_a_mean_alone(tmp_path):
    metrics = {name: {"value": 0.5} for name in ("mean", "std", "stderr")}
    rows = rows_of(HEADER | {"results": {"scores": [{"name": "s", "metrics": metrics}]}}, tmp_path)
    rows = rows.set_index("metric")
    assert {*rows.index} == {"sums/s/mean", "sums/s/std"}
    assert not math.isnan(rows.loc["sums/s/mean"].low)
    assert math.isnan(rows.loc["sums/s/std"].low)


def test_a_study_judges_logs(tmp_path):
    for seed in (1, 2):
        for arm in ("a", "b"):
            (tmp_path / f"{arm}-{seed}.json").write_bytes(LOG.read_bytes())
    test = {"metric": "sums/match/accuracy", "of": "a/after", "against": "b/after", "direction": "higher"}
    study = {
        "title": "Sums",
        "runs": {"after": {"files": ["{arm}-{seed}.json"]}},
        "claims": {"higher": {"says": "a is higher.", "test": test | {"margin": 0.1}}},
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    table = numbers.collect(document.load(tmp_path / "study.yaml"), tmp_path).table
    assert table.value.tolist() == [0.625] * 4


@pytest.mark.parametrize("status", ["error", "cancelled", "started"])
def test_an_evaluation_that_did_not_end_well_is_refused(status, tmp_path):
    with pytest.raises(UserError, match=f"log.json: its status is '{status}', not 'success'"):
        rows_of(HEADER | {"status": status}, tmp_path)


def test_of_a_zip_a_line_says_how_to_write_it_as_json(tmp_path):
    (tmp_path / "sums.eval").write_bytes(b"PK\x03\x04" + bytes(40))
    with pytest.raises(UserError, match=r"inspect log dump --header-only sums\.eval > sums\.json") as error:
        formats.read_log(tmp_path / "sums.eval", None)
    assert len(error.value.lines) == 1


def test_a_step_with_a_status_is_no_log_of_inspect(tmp_path):
    rows = rows_of({"step": 1, "status": "running", "eval": {"accuracy": 0.5}}, tmp_path)
    assert rows[["step", "metric", "value"]].values.tolist() == [[1, "eval/accuracy", 0.5]]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "metrics", "scores", "value", "stderr", "mean"]), inner)
    ),
    max_leaves=8,
)


@given(results=json_values, scores=json_values, metrics=json_values, value=json_values)
def test_no_content_raises_anything_else(tmp_path_factory, results, scores, metrics, value):
    folder = tmp_path_factory.mktemp("inspect")
    score = {
        "name": value,
        "reducer": value,
        "metrics": {"mean": {"value": value}, "stderr": {"value": value}},
    }
    for content in (results, {"scores": scores}, {"scores": [{"metrics": metrics}, score]}):
        with suppress(UserError):
            rows_of(HEADER | {"results": content}, folder)
