"""Every kind of stage learns in bf16 with gradient checkpointing, which CPU runs do only where asked to."""

import csv
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import test_dpo
import test_ppo
import test_reward_model
import test_sft
from stage_runs import at_training_step, error_line
from test_dpo import ready as dpo_ready  # noqa: F401
from test_reward_model import ready as reward_model_ready  # noqa: F401
from test_several_processes import both
from test_sft import ready as sft_ready  # noqa: F401

ASKED = {"bf16": True, "gradient_checkpointing": True, "max_steps": 4}
# 4 micro-steps a rollout; minibatches of 16 rows in two pieces of like length
GRPO = stage_runs.GRPO | {"problems": 32, "sampler": "lean"}
ROLLOUTS = {"per_device_train_batch_size": 16, "max_steps": 10, "logging_steps": 1, "sync_ref_model": False}


def asking(config: dict[str, Any], **args: Any) -> dict[str, Any]:
    return config | {"args": config["args"] | ASKED | args}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pretrain", "sft", "dpo", "reward_model"])
def test_it_learns(kind: str, base: Path, request: pytest.FixtureRequest, tmp_path: Path):
    own = {"sft": test_sft, "dpo": test_dpo, "reward_model": test_reward_model}.get(kind)
    config, inputs = (own.CONFIG, own.INPUTS) if own else (stage_runs.PRETRAIN, {})
    if own:
        shutil.copytree(request.getfixturevalue(f"{kind}_ready"), tmp_path / "run")
    arguments = stage_runs.command(kind, asking(config), **inputs)
    assert stage_runs.run(kind, arguments, tmp_path / "run") == 0, (tmp_path / "run/err.txt").read_text()
    provenance = json.loads((tmp_path / f"run/results/{kind}/provenance.json").read_text())
    assert provenance["steps"] == 4 * config.get("members", 1)


def ratios_at_start(folder: Path, kind: str) -> list[float]:
    with (folder / f"results/{kind}/curve.csv").open() as file:
        return [float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "ratio/at_start"]


@pytest.mark.slow
def test_grpo_starts_at_ratio_one_and_is_resumed_exactly(base: Path, tmp_path: Path):
    config = asking(GRPO, **ROLLOUTS)
    command = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
    for name in ("whole", "killed"):
        shutil.copytree(base, tmp_path / name)
    assert stage_runs.run("grpo", command, tmp_path / "whole") == 0, (tmp_path / "whole/err.txt").read_text()
    assert stage_runs.run("grpo", command, tmp_path / "killed", partial(at_training_step, 8)) == -9
    assert stage_runs.run("grpo", command, tmp_path / "killed") == 0
    assert stage_runs.outputs(tmp_path / "whole", "grpo") == stage_runs.outputs(tmp_path / "killed", "grpo")
    assert ratios_at_start(tmp_path / "whole", "grpo") == [0.0, 0.0, 0.0]
    metrics = json.loads((tmp_path / "whole/results/grpo/metrics.json").read_text())["metrics"]
    assert 1e-4 < metrics["last/sampler_gap"] < 0.05  # the lean sampler computes in float32


@pytest.mark.slow
def test_two_processes_start_at_ratio_one(base: Path, tmp_path: Path):
    config = asking(GRPO, **ROLLOUTS | {"per_device_train_batch_size": 8, "max_steps": 4})
    command = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
    shutil.copytree(base, tmp_path / "run")
    assert both("grpo", command, tmp_path / "run") == [0, 0], (tmp_path / "run/err.txt").read_text()
    assert ratios_at_start(tmp_path / "run", "grpo") == [0.0]


@pytest.mark.slow
def test_ppo_starts_at_ratio_one(base: Path, tmp_path: Path):
    config = test_ppo.PPO | {"problems": 96, "longest_prompt": 8}
    asked = asking(config, per_device_train_batch_size=16, logging_steps=1)
    stage = test_ppo.stage(asked, base, tmp_path / "run")
    assert stage_runs.run(*stage) == 0, (tmp_path / "run/err.txt").read_text()
    assert ratios_at_start(tmp_path / "run", "ppo") == [0.0]


@pytest.mark.slow
def test_a_static_cache_is_refused_in_one_line(base: Path, tmp_path: Path):
    shutil.copytree(base, tmp_path / "run")
    config = asking(stage_runs.GRPO, cache_implementation="static")
    command = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
    assert stage_runs.run("grpo", command, tmp_path / "run") == 2
    assert "args.cache_implementation: static holds keys and values" in error_line(tmp_path / "run")
