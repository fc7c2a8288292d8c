"""Adapters over weights that FSDP2 spreads over two processes: learnt as in one, saved merged, resumed."""

import json
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import stage_runs
import test_lora
import test_reward_model
import torch
from cpu_shards import shard_on_cpus
from safetensors.torch import load_file
from test_dpo import ready as dpo_ready  # noqa: F401
from test_lora import LORA, STAGES, ppo_ready  # noqa: F401
from test_reward_model import ready as reward_model_ready  # noqa: F401
from test_several_processes import both, fixed_completions, require_same, weights, with_batch
from test_sft import ready as sft_ready  # noqa: F401
from test_sharded import FSDP, fixed_and_sharded, killed_at, require_same_measures, require_spread

from encore.runtime import gpus

REWARD_MODEL = (
    test_lora.fixed_reference(test_reward_model.CONFIG),
    test_reward_model.INPUTS,
    "reward_model_ready",
)
ADAPTED = {kind: STAGES[kind] for kind in STAGES if kind in gpus.SHARDED} | {"reward_model": REWARD_MODEL}
KEPT = 4  # the model after so many steps
ROLLOUTS = {"steps_per_generation": None, "generation_batch_size": 16, "gradient_accumulation_steps": 4}


def stage(kind: str, request: pytest.FixtureRequest, folder: Path) -> tuple[list[str], Path]:
    """Arguments of a stage with adapters, its batch stated for any number of processes; and its folder."""
    config, inputs, fixture = ADAPTED[kind]
    copytree(request.getfixturevalue(fixture), folder)
    args = {**ROLLOUTS, "max_steps": 6} if kind in ("grpo", "ppo") else {}
    config = with_batch(config, **args)
    if kind == "sft":
        config["evaluate_every"] = KEPT
    if kind == "ppo":
        config["ptx"] = {**config["ptx"], "batch_size": 4}
        del config["sampler"]  # lean needs whole weights
    return stage_runs.command(kind, config, **inputs), folder


def require_same_kept(one: Path, two: Path) -> None:
    """The models kept on the way are the same, and not the products."""
    first, second = (load_file(at / f"steps/{KEPT}/model.safetensors") for at in (one, two))
    final = load_file(two / "final/model.safetensors")
    assert first.keys() == second.keys() == final.keys()
    assert all(torch.allclose(weight, second[name], atol=1e-4) for name, weight in first.items())
    assert any(not torch.allclose(weight, final[name], atol=1e-3) for name, weight in second.items())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ADAPTED)
def test_sharded_they_learn_what_one_process_learns(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
):
    of_rollouts = kind in ("grpo", "ppo")
    arguments, one = stage(kind, request, tmp_path / "one")
    _, two = stage(kind, request, tmp_path / "two")
    assert stage_runs.run(kind, arguments, one, fixed_completions if of_rollouts else None) == 0, (
        one / "err.txt"
    ).read_text()
    trap = fixed_and_sharded if of_rollouts else shard_on_cpus
    assert both(kind, arguments + FSDP, two, trap) == [0, 0], (two / "err.txt").read_text()
    require_spread(two, *(("critic", "scorer0") if kind == "ppo" else ()))
    require_same(one / "checkpoints" / kind, two / "checkpoints" / kind)
    if kind == "sft":
        require_same_kept(one / "checkpoints/sft", two / "checkpoints/sft")
    before, after = (weights(two / "checkpoints" / name) for name in ("pretrain", kind))
    starts = {name.rpartition("/")[2]: weight for name, weight in before.items()}
    for place, learnt in after.items():
        name = place.rpartition("/")[2]
        if name == "score.weight":
            continue
        weight, change = starts[name], learnt - starts[name]
        assert bool(change.abs().max() > 1e-4) is ("_proj" in name), name
        assert weight.dim() < 2 or torch.linalg.matrix_rank(change, tol=1e-5) <= LORA["rank"], name
    first, second = (json.loads((at / f"results/{kind}/metrics.json").read_text()) for at in (one, two))
    assert first["files"].keys() == second["files"].keys()
    require_same_measures(kind, one, two)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sft", "reward_model", "grpo", "ppo"])
def test_killed_and_rerun_with_the_same_bits(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    arguments, whole = stage(kind, request, tmp_path / "whole")
    _, killed = stage(kind, request, tmp_path / "killed")
    arguments = arguments + FSDP
    assert both(kind, arguments, whole, shard_on_cpus) == [0, 0], (whole / "err.txt").read_text()
    assert any(both(kind, arguments, killed, partial(killed_at, 10)))
    assert both(kind, arguments, killed, shard_on_cpus) == [0, 0], (killed / "err.txt").read_text()
    assert "resuming from step" in (killed / "out.txt").read_text()
    outputs: Any = (
        test_reward_model.outputs if kind == "reward_model" else partial(stage_runs.outputs, kind=kind)
    )
    assert outputs(whole) == outputs(killed)
