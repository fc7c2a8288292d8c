"""Rejection sampling keeps completions that are right, uncut and distinct, for stage `sft` to read.

What it keeps by thresholds is in test_stage_three.py, the rule itself in sampling/test_funnel.py.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import jobs
import pytest
import stage_runs

from encore import validity
from encore.data import demonstrations
from encore.errors import UserError
from encore.runtime import files, sentinel
from encore.sampling.completion import Completion
from encore.stages.rejection_sampling import summary

ARGS = {"num_generations": 4, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 24}


def test_summary():
    completions = [
        Completion(t, tokens=n, truncated=t == "d") for t, n in (("a", 2), ("a", 2), ("b", 4), ("d", 9))
    ]
    result = summary(completions, [1.0, 1.0, 0.0, 0.0], [0], 2)
    assert result["accuracy"] == 0.5
    assert result["problems/covered"] == 0.5
    assert result["kept"] == 1
    assert result["kept/share_of_right"] == 0.5
    assert result["length/kept"] == 2
    assert result["truncation_rate"] == 0.25


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"num_generations": 0}, "args.num_generations: expected at least 1, got 0"),
        ({"max_per_problem": 0}, "args.max_per_problem: expected at least 1, got 0"),
        ({"temperature": 0.0}, "args.temperature: expected more than 0, got 0.0"),
        ({"top_p": 1.5}, "args.top_p: expected at most 1, got 1.5"),
    ],
)
def test_a_mistake_in_args_is_one_line(args, says):
    with pytest.raises(UserError, match=f"^{says}$"):
        jobs.stage("rejection_sampling", {"args": ARGS | args})


ROW = {"prompt": "1+2=", "completion": "3", "question": "1+2=", "answer": "3", "difficulty": 2}


def test_demonstrations_come_back_as_they_were(tmp_path: Path):
    rows = [ROW, ROW | {"completion": 'é\n"\u2028'}]
    assert demonstrations.load(stage_runs.rows_product(tmp_path, [row | {"more": 1} for row in rows])) == rows


def test_demonstrations_that_were_changed_are_refused(tmp_path: Path):
    metrics = stage_runs.rows_product(tmp_path, [ROW])
    with (tmp_path / "final" / demonstrations.FILE).open("a") as file:
        file.write(json.dumps(ROW) + "\n")
    assert "digest mismatch" in str(validity.of_stage(metrics))
    with pytest.raises(UserError, match="have changed since it was written"):
        demonstrations.load(metrics)


def test_a_model_is_no_data(tmp_path: Path):
    metrics = stage_runs.rows_product(tmp_path, [ROW])
    (tmp_path / "final" / demonstrations.FILE).rename(tmp_path / "final" / "model.safetensors")
    files.write_json(
        metrics, sentinel.read_sentinel(metrics) | {"digest": sentinel.digest(tmp_path / "final")}
    )
    with pytest.raises(UserError, match="its stage has made no data"):
        demonstrations.load(metrics)


STAGE: dict[str, Any] = {
    "task": stage_runs.TASK,
    "template": stage_runs.TEMPLATE,
    "problems": 12,
    "args": ARGS,
}
POLICY = {"policy": "results/pretrain/metrics.json"}


def lenient() -> None:
    """Count every completion with an equals sign as right: the tests' policy has learnt next to nothing."""
    from encore.rewards import rules

    def build(names, world, seed, **options):
        def accuracy(completions, answer, **columns):
            return [
                float("=" in c or f"<answer>{a}</answer>" in c)
                for c, a in zip(completions, answer, strict=True)
            ]

        return [accuracy]

    rules.build = build


def while_saving() -> None:
    lenient()
    demonstrations.save = lambda *args: stage_runs.die()


@pytest.mark.slow
def test_the_stage(base: Path, tmp_path: Path):
    arguments = stage_runs.command("rejection_sampling", STAGE, **POLICY)
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        shutil.copytree(base, folder)
    assert stage_runs.run("rejection_sampling", arguments, folders[0], lenient) == 0, (
        folders[0] / "err.txt"
    ).read_text()
    assert stage_runs.run("rejection_sampling", arguments, folders[1], while_saving) == -9
    assert stage_runs.run("rejection_sampling", arguments, folders[1], lenient) == 0
    outputs = [stage_runs.outputs(folder, "rejection_sampling") for folder in folders]
    assert outputs[0] == outputs[1]
    results = folders[0] / "results/rejection_sampling"
    result = json.loads((results / "metrics.json").read_text())
    rows = [json.loads(line) for line in (results / "completions.jsonl").open()]
    assert len(rows) == 12 * 4
    kept = [row for row in rows if row["kept"]]
    assert 0 < len(kept) == result["metrics"]["kept"] < len(rows)
    data = [json.loads(line) for line in outputs[0]["data.jsonl"].decode().splitlines()]
    assert [row["completion"] for row in data] == [row["completion"] for row in kept]
    assert all("=" in row["completion"] for row in data)
    assert result["metrics"]["funnel/sampled"] == len(rows)
    assert result["metrics"]["funnel/kept"] == len(kept)
    assert {one["check"] for one in result["health"]} >= {"gold", "covered", "truncation"}


@pytest.mark.slow
def test_nothing_right_is_said_in_one_line(base: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(base, folder)
    config = STAGE | {"args": ARGS | {"max_completion_length": 1}}
    arguments = stage_runs.command("rejection_sampling", config, **POLICY)
    assert stage_runs.run("rejection_sampling", arguments, folder) == 2
    assert "error: 0 of 48 completions kept: " in stage_runs.error_line(folder)
    assert not (folder / "results/rejection_sampling/metrics.json").exists()
