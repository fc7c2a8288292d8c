"""A stage and an evaluation of our own, warm and plain: the same files to the byte."""

import json
from pathlib import Path

import pytest
from stage_runs import PRETRAIN, TASK, TEMPLATE
from warm_workflow import NO_GPU, opened

from encore.workflow.warm.client import VARIABLE

ROOT = Path(__file__).parents[2]
HELDOUT = {
    "task": TASK,
    "template": TEMPLATE,
    "items": 8,
    "samples": 4,
    "temperature": 1.0,
    "top_p": 1.0,
    "max_gen_toks": 12,
    "k": [1, 4],
}
SAME = ("results/metrics.json", "results/curve.csv", "results/after.json", "results/after.samples.jsonl")


@pytest.mark.slow
def test_a_warm_stage_and_evaluation_make_what_plain_ones_make(tmp_path):
    stage = [
        "pretrain",
        "--config",
        json.dumps(PRETRAIN),
        "--seed",
        "3",
        "--name",
        "toy/cpu/base/seed3/pretrain",
    ]
    stage += ["--checkpoints", "checkpoints", "--out", "results/metrics.json", *NO_GPU]
    evaluation = [
        "--config",
        json.dumps({"tasks": {"heldout": HELDOUT}, "seed": 3}),
        "--name",
        "toy/cpu/base/after",
    ]
    evaluation += ["--model", "results/metrics.json", *NO_GPU]
    evaluation += ["--out", "results/after.json", "--samples", "results/after.samples.jsonl"]
    made, said, cpu = [], [], []
    for name in ("warm", "off"):
        folder = tmp_path / name
        folder.mkdir()
        code = {"PYTHONPATH": str(ROOT)}
        for workflow in opened(folder, **code, **({VARIABLE: name} if name == "off" else {})):
            done = [workflow.ask(*stage, **code), workflow.ask(*evaluation, module="evals.evaluate", **code)]
            assert [one.returncode for one in done] == [0, 0], done
            lines = [line for one in done for line in one.stdout.splitlines()]
            said.append([line.partition(" in 0:")[0] for line in lines if " tok/s" not in line])
            workflow.process.kill()
            assert workflow.process.stderr.read() == ""  # the server has no fault, such as a thread
        made.append([(folder / file).read_bytes() for file in SAME])
        cpu.append(json.loads((folder / "results/provenance.json").read_text())["cpu_s"])
    assert made[0] == made[1]
    assert said[0] == said[1]
    assert cpu[0] < cpu[1] / 2  # without the imports
