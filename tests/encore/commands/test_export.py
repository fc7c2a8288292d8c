"""`encore export`: forms that other tools read, by their own schema or library.

The schemas in every_eval_ever/ are those of github.com/evaleval/every_eval_ever at commit 9bce413, under the
licence beside them.
"""

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest
from jsonschema import Draft7Validator
from typer.testing import CliRunner

from encore.commands import every_eval_ever, ro_crate
from encore.commands.command_line import app
from encore.errors import UserError
from encore.runtime import suite

SCHEMAS = Path(__file__).parent / "every_eval_ever"
RECORDS = Path(__file__).parents[3] / "results/published"
MARKUP = "</script><img src=x onerror=alert(1)>\u2028"
METRICS = {
    "accuracy": {"value": 0.5, "low": 0.25, "high": 0.75},
    "pass@2": {"value": 1.0, "low": 1.0, "high": 1.0},
    "gold": {"value": 3.5, "low": 3.0, "high": 4.0},
    "length": {"value": 12.0, "low": 10.0, "high": 14.0},
    "accuracy/difficulty=9": {"value": None, "low": None, "high": None},
}
ROW = {"question": "1+1=", "answer": "2", "completions": ["2", MARKUP], "correct": [True, False]}


@pytest.fixture
def results(tmp_path):
    """The results of an evaluation on three tasks, one of which nothing verifies, with their samples."""
    gsm8k = {"id": "openai/gsm8k", "task_id": "main"}
    tasks = {
        "sums": {"items": 2, "metrics": METRICS},
        "gsm8k": {"items": 1, "metrics": {"accuracy": METRICS["accuracy"]}, "data_set": gsm8k},
        "chat": {"items": 1, "metrics": {"gold": METRICS["gold"]}},
    }
    rows = [{"task": "sums", "item": item, "votes": ["2", None]} | ROW for item in (0, 1)]
    rows += [{"task": "chat", "item": 0, "votes": [None, None]} | ROW | {"correct": [None, None]}]
    rows += [{"task": "gsm8k", "item": 0, "votes": [], "correct": []} | {"question": "?", "answer": "7"}]
    path = tmp_path / "after.json"
    path.write_text(json.dumps({"digest": "sha256:1", "tasks": tasks}), encoding="utf-8")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (tmp_path / "after.samples.jsonl").write_text(lines, encoding="utf-8")
    return path


def validator(name):
    return Draft7Validator(json.loads((SCHEMAS / name).read_text(encoding="utf-8")))


def exported(results):
    whole, samples = every_eval_ever.export(results, "me/mine", results.parent / "out")
    lines = samples.read_text(encoding="utf-8").split("\n")[:-1]
    return json.loads(whole.read_text(encoding="utf-8")), [json.loads(line) for line in lines], samples


def test_both_files_are_valid_by_the_schema_of_every_eval_ever(results):
    whole, rows, _ = exported(results)
    assert not [error.message for error in validator("eval.schema.json").iter_errors(whole)]
    for row in rows:
        assert not [error.message for error in validator("instance_level_eval.schema.json").iter_errors(row)]
    assert [*validator("eval.schema.json").iter_errors(whole | {"more": 1})]  # so the schema can refuse


def test_every_score_and_every_verified_sample_is_there_once(results):
    whole, rows, _ = exported(results)
    scores = {
        result["evaluation_result_id"]: result["score_details"] for result in whole["evaluation_results"]
    }
    assert {*scores} == {"sums/accuracy", "sums/pass@2", "sums/gold", "gsm8k/accuracy", "chat/gold"}
    interval = scores["sums/accuracy"]["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"], interval["confidence_level"]) == (0.25, 0.75, 0.95)
    sources = {result["evaluation_name"]: result["source_data"] for result in whole["evaluation_results"]}
    assert sources["gsm8k"]["hf_repo"] == "openai/gsm8k"
    assert [(row["sample_id"], row["evaluation"]["is_correct"]) for row in rows] == [
        ("sums/0", True), ("sums/0", False), ("sums/1", True), ("sums/1", False),
    ]  # fmt: skip
    assert rows[1]["output"]["raw"] == [MARKUP]


def test_the_two_files_point_at_each_other(results):
    whole, rows, samples = exported(results)
    detailed = whole["detailed_evaluation_results"]
    assert samples.as_posix().endswith(detailed["file_path"])
    assert detailed["file_path"].startswith("data/encore/me/mine/")
    assert detailed["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
    assert detailed["total_rows"] == len(rows) == 4
    assert {row["evaluation_id"] for row in rows} == {whole["evaluation_id"]}
    joined = {result["evaluation_result_id"] for result in whole["evaluation_results"]}
    assert {row["evaluation_result_id"] for row in rows} <= joined


@pytest.mark.parametrize(
    ("spoil", "model", "said"),
    [
        (lambda path: None, "mine", "mine: expected org/name"),
        (lambda path: None, "me/mine/more", "me/mine/more: expected org/name"),
        (lambda path: path.unlink(), "me/mine", "expected the results of an evaluation"),
        (lambda path: path.write_text("[" * 10**5), "me/mine", "expected the results of an evaluation"),
        (lambda path: path.write_text("[1]"), "me/mine", "expected the results of an evaluation"),
        (
            lambda path: path.with_name("after.samples.jsonl").unlink(),
            "me/mine",
            "expected the results of an evaluation",
        ),
    ],
)
def test_what_is_no_evaluation_is_told_in_one_line(results, spoil, model, said):
    spoil(results)
    with pytest.raises(UserError) as error:
        every_eval_ever.export(results, model, results.parent / "out")
    assert said in str(error.value)
    assert len(error.value.lines) == 1
    assert not (results.parent / "out").exists()


def test_a_record_is_a_workflow_run_crate(tmp_path):
    """Read again by the library of RO-Crate."""
    rocrate = pytest.importorskip("rocrate.rocrate")
    record = RECORDS / "r1_zero-cpu"
    assert ro_crate.export(record, tmp_path / "crate").is_file()
    crate = rocrate.ROCrate(tmp_path / "crate")
    assert crate.mainEntity.type == ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
    (run,) = crate.get_by_type("CreateAction")
    assert run["instrument"] == crate.mainEntity
    inputs, outputs = ({entity.id for entity in run[key]} for key in ("object", "result"))
    assert {"packages.txt", "registered.yaml"} < inputs
    assert any(name.startswith("recipe/") for name in inputs)
    assert inputs.isdisjoint(outputs)
    assert {path.name for path in record.iterdir()} <= inputs | outputs
    runs = pd.read_csv(record / "runs.csv.xz")
    assert run["startTime"] == pd.to_datetime(runs.started).min().isoformat()
    assert run["startTime"] < run["endTime"]
    assert runs.commit[0] in crate.description
    for path in record.iterdir():
        assert (tmp_path / "crate" / path.name).read_bytes() == path.read_bytes()


def test_a_crate_made_by_a_wheel_has_the_files_of_the_wheel(tmp_path, monkeypatch):
    pytest.importorskip("rocrate.rocrate")
    packaged = tmp_path / "packaged"
    (packaged / "recipes/r1_zero").mkdir(parents=True)
    (packaged / "Snakefile").write_text("rule of_the_wheel:\n")
    (packaged / "recipes/r1_zero/recipe.yaml").write_text("title: of the wheel\n")
    monkeypatch.setattr(suite, "PACKAGED", packaged)
    monkeypatch.chdir(tmp_path)
    ro_crate.export(RECORDS / "r1_zero-cpu", tmp_path / "crate")
    assert (tmp_path / "crate/Snakefile").read_text() == "rule of_the_wheel:\n"
    assert [path.name for path in (tmp_path / "crate/recipe").iterdir()] == ["recipe.yaml"]


def test_what_is_no_record_is_told_in_one_line(tmp_path):
    pytest.importorskip("rocrate.rocrate")
    with pytest.raises(UserError, match=r"expected the folder of a record, with claims\.csv and runs\.csv"):
        ro_crate.export(tmp_path, tmp_path / "crate")


def test_the_command_writes_and_says_what(results):
    def run(*words):
        return CliRunner().invoke(app, ["export", str(results), "--out", str(results.parent / "out"), *words])

    done = run("--to", "every-eval-ever", "--model", "me/mine")
    assert done.exit_code == 0
    assert all(Path(line).is_file() for line in done.stdout.split())
    assert "--model: it goes with --to every-eval-ever" in str(run("--to", "every-eval-ever").exception)
    assert "--model: it goes with --to every-eval-ever" in str(
        run("--to", "ro-crate", "--model", "a/b").exception
    )
