"""Stage `grpo` with extensions of its objective, killed at any micro-step, ends like one never killed."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import stage_runs
from stage_runs import at_training_step

# 8 micro-steps a rollout in windows of 2, two epochs over it; a checkpoint every third step, in mid-rollout
SHAPE = {
    "gradient_accumulation_steps": 2,
    "num_iterations": 2,
    "max_steps": 13,
    "loss_type": "dapo",
    "beta": 0.0,
}
RATIOS = {"advantage": "moving_average", "importance_ratio": "sequence_token", "old_logp_noise": 0.05}
STEPS = {
    "advantage": "process",
    "rewards": {"accuracy": 1.0},
    "replay": {"every": 4, "share": 0.5},
    "problems": 40,
}


def config(keys: dict[str, Any]) -> dict[str, Any]:
    return {**stage_runs.GRPO, **keys, "args": {**stage_runs.GRPO["args"], **SHAPE, "sync_ref_model": False}}


def stage(keys: dict[str, Any], base: Path, folder: Path) -> tuple[str, list[str], Path]:
    shutil.copytree(base, folder)
    arguments = stage_runs.command("grpo", config(keys), policy="results/pretrain/metrics.json")
    return "grpo", arguments, folder


@pytest.mark.slow
@pytest.mark.parametrize("keys", [RATIOS, STEPS], ids=["ratios", "steps"])
def test_killed_at_any_micro_step(keys: dict[str, Any], base: Path, tmp_path: Path):
    unbroken = stage(keys, base, tmp_path / "whole")
    assert stage_runs.run(*unbroken) == 0, (unbroken[2] / "err.txt").read_text()
    kills = [3, *range(8, 27, 2)]  # 26 micro-steps
    stages = [stage(keys, base, tmp_path / str(number)) for number in kills]
    killed = [(*one, partial(at_training_step, number)) for one, number in zip(stages, kills, strict=True)]
    assert stage_runs.run_all(killed) == [-9] * len(kills)
    assert stage_runs.run_all(stages) == [0] * len(kills)
    expected = stage_runs.outputs(unbroken[2], "grpo")
    assert b"token,0." in expected["ratios.csv"]
    for _, _, folder in stages:
        assert stage_runs.outputs(folder, "grpo") == expected, folder.name
