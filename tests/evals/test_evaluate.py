"""The command: a real model through lm-eval, its files, its determinism and its failures."""

import json
import os
import shutil
from unittest import mock

import pytest
import torch

from encore.runtime import files, progress, sentinel
from encore.runtime.progress import Progress
from evals import evaluate


@pytest.fixture
def command(tmp_path, checkpoint):
    """Runs the command on tasks; returns its status and its two files."""

    def run(tasks, seed=0, model=None, folder="a", **more):
        out, samples = tmp_path / folder / "after.json", tmp_path / folder / "after.samples.jsonl"
        options = {
            "config": json.dumps({"tasks": tasks, "seed": seed}),
            "model": model or checkpoint,
            "name": "r1_zero/cpu/base-recipe/seed0/after",
            "out": out,
            "samples": samples,
            **more,
        }
        status = evaluate.main([f"--{option}={value}" for option, value in options.items()])
        return status, out, samples

    return run


def test_files_and_lines(command, heldout, checkpoint, capsys):
    greedy = {**heldout, "temperature": 0.0, "samples": 1, "k": [1]}
    status, out, samples = command({"heldout": heldout, "greedy": greedy})
    assert status == 0
    result = json.loads(out.read_text())
    assert result["checkpoint"] == "after"
    assert result["digest"] == sentinel.read_sentinel(checkpoint)["digest"]
    assert result["seed"] == 0
    assert list(result["tasks"]) == ["greedy", "heldout"]
    metrics = result["tasks"]["heldout"]["metrics"]
    assert {"accuracy", "pass@4", "maj@8", "format_rate", "truncation_rate", "length"} <= set(metrics)
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    assert [(row["task"], row["item"]) for row in rows] == [
        *(("heldout", i) for i in range(6)),
        *(("greedy", i) for i in range(6)),
    ]
    lengths = [n for row in rows[:6] for n in row["tokens"]]
    assert metrics["length"]["value"] == pytest.approx(sum(lengths) / 48)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[r1_zero/cpu/base-recipe/seed0 eval:after] ") for line in lines)
    assert "[r1_zero/cpu/base-recipe/seed0 eval:after] heldout 48/48 completions" in lines


@pytest.mark.parametrize("asked", [True, False])
def test_a_deterministic_evaluation_is_so_from_its_first_line(asked, command, heldout, monkeypatch):
    seen = []

    def measure(*_):
        seen.append((torch.are_deterministic_algorithms_enabled(), os.environ.get("VLLM_BATCH_INVARIANT")))

    monkeypatch.setattr("evals.measure.measure", measure)
    config = {"tasks": {"heldout": heldout}, "seed": 0, "deterministic": asked}
    with mock.patch.dict(os.environ):
        os.environ.pop("VLLM_BATCH_INVARIANT", None)
        assert command({}, config=json.dumps(config))[0] == 0
    assert seen == [(asked, "1" if asked else None)]


def test_a_base_model_is_measured_by_each_candidate_template(command, heldout, capsys):
    status, out, samples = command({"heldout": heldout | {"templates": {"bare": "{question}"}}})
    assert status == 0
    task = json.loads(out.read_text())["tasks"]["heldout"]
    assert set(task["templates"]) == {"own", "bare"}
    assert task["metrics"] == task["templates"][task["template"]]["metrics"]
    (other,) = {"own", "bare"} - {task["template"]}
    names = [json.loads(line)["task"] for line in samples.read_text().splitlines()]
    assert sorted(names) == sorted([*["heldout"] * 6, *[f"heldout@{other}"] * 6])
    printed = capsys.readouterr().out
    assert "heldout@bare 48/48 completions" in printed
    assert f"heldout by template {task['template']} accuracy" in printed


def test_the_seed_decides_every_byte_and_nothing_else_does(command, heldout):
    _, first, first_samples = command({"heldout": heldout})
    # another task before it changes nothing
    _, again, again_samples = command({"also": heldout, "heldout": heldout}, folder="b")
    _, _, other_samples = command({"heldout": heldout}, seed=1, folder="c")
    assert again_samples.read_text().splitlines()[6:] == first_samples.read_text().splitlines()
    assert (
        json.loads(again.read_text())["tasks"]["heldout"] == json.loads(first.read_text())["tasks"]["heldout"]
    )
    assert other_samples.read_bytes() != first_samples.read_bytes()
    for line in first_samples.read_text().splitlines():
        assert len(set(json.loads(line)["completions"])) == heldout["samples"]


def test_a_model_that_its_stage_has_kept(command, heldout, checkpoint, tmp_path, capsys):
    kept = tmp_path / "checkpoints/steps/40"
    shutil.copytree(checkpoint.parent / "final", kept)
    (kept / "another.json").write_text("{}")
    record = sentinel.read_sentinel(checkpoint) | {"steps": {"40": sentinel.of_folder(kept)}}
    files.write_json(tmp_path / "metrics.json", record)
    small = {"heldout": heldout | {"items": 2, "samples": 1, "k": [1]}}
    status, out, _ = command(small, model=tmp_path / "metrics.json", step=40)
    assert status == 0
    assert json.loads(out.read_text())["digest"] == sentinel.digest(kept) != record["digest"]
    assert command(small, model=tmp_path / "metrics.json", step=41, folder="b")[0] == 2
    assert "no model is kept for step 41; kept: 40\n" in capsys.readouterr().out
    assert command(small, model='hub:{"path": "x"}', step=40, folder="b")[0] == 2
    assert "error: --step: a stage keeps models by step, but --model is no stage\n" in capsys.readouterr().out


def corrupted(checkpoint, folder, change):
    """A copy of the checkpoint, changed by `change(final folder)`."""
    shutil.copytree(checkpoint.parent / "final", folder / "final")
    record = {**sentinel.read_sentinel(checkpoint), "model": str(folder / "final")}
    files.write_json(folder / "metrics.json", record)
    change(folder / "final")
    return folder / "metrics.json"


def flip(final):
    weights = final / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [(flip, "have changed since it was written"), (shutil.rmtree, "is missing; run its stage again")],
)
def test_a_checkpoint_that_is_not_what_it_was(
    command, heldout, checkpoint, tmp_path, capsys, change, message
):
    status, out, _ = command({"heldout": heldout}, model=corrupted(checkpoint, tmp_path / "copy", change))
    check_failure(status, out, capsys, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampels": 3}, 'sampels: unknown key; did you mean "samples"?'),
        ({"max_gen_toks": 120}, "exceed the model's 128 positions"),
        (
            {"items": 10**6, "task": {"world": "chain", "terms": [2, 2]}},
            "1000000 distinct test questions asked",
        ),
    ],
)
def test_mistakes_in_a_task(command, heldout, capsys, changes, message):
    status, out, _ = command({"heldout": {**heldout, **changes}})
    check_failure(status, out, capsys, message)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("results/none/metrics.json", "results/none/metrics.json does not exist; run its stage first"),
        ("hub:{", "--model: not JSON"),
        ('hub:{"path": "none"}', "model.path: no folder none"),
    ],
)
def test_mistakes_in_the_model(command, heldout, capsys, model, message):
    status, out, _ = command({"heldout": heldout}, model=model)
    check_failure(status, out, capsys, message)


def check_failure(status, out, capsys, message):
    """One line on stdout and on the log, no traceback, and no result."""
    captured = capsys.readouterr()
    assert status == 2
    assert message in captured.out.splitlines()[-1]
    assert [line for line in captured.err.splitlines() if line.startswith("error: ")][-1].count(message) == 1
    assert "Traceback" not in captured.err
    assert not out.exists()


def test_a_folder_may_be_evaluated_too(command, heldout, checkpoint):
    leaf = "hub:" + json.dumps({"path": str(checkpoint.parent / "final")})
    status, out, samples = command({"heldout": heldout}, model=leaf)
    _, same, same_samples = command({"heldout": heldout}, folder="b")
    assert status == 0
    assert samples.read_bytes() == same_samples.read_bytes()
    assert out.read_bytes() == same.read_bytes()


@pytest.mark.fault(
    "the disk is full", "writing an evaluation", "one line; no result is left that a later run trusts"
)
def test_a_full_disk_leaves_no_result(command, heldout, monkeypatch, capsys):
    status, out, _ = command({"heldout": heldout})
    assert status == 0

    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write", full)
    status, out, _ = command({"heldout": heldout})
    assert status == 2
    assert not out.exists()
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: cannot save the evaluation in ")
    assert "No space left on device; make room and run the same command again" in error


def test_progress_before_the_first_completion(capsys):
    now = iter([0.0, 6.0])
    report = progress.reporter(Progress("r/cpu/base/seed0/eval:after"), "heldout", clock=lambda: next(now))
    report(0, 4096)
    assert capsys.readouterr().out == "[r/cpu/base/seed0 eval:after] heldout 0/4096 completions\n"


def test_progress_lines(capsys):
    now = iter([0.0, 1.0, 6.0, 7.0, 24.0])
    report = progress.reporter(Progress("r/cpu/base/seed0/eval:after"), "heldout", clock=lambda: next(now))
    for done in (512, 1024, 1536, 4096):
        report(done, 4096)
    assert capsys.readouterr().out.splitlines() == [
        "[r/cpu/base/seed0 eval:after] heldout 1024/4096 completions 0:18 left",
        "[r/cpu/base/seed0 eval:after] heldout 4096/4096 completions",
    ]
