"""FSDP2 on two processes: the weights are really spread, come out as without it, and a killed run resumes."""

import json
import os
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import stage_runs
import test_ppo
import test_sft
import torch
from cpu_shards import shard_on_cpus
from safetensors.torch import load_file
from stage_runs import at_training_step
from test_dpo import ready as dpo_ready  # noqa: F401
from test_reward_model import ready as reward_model_ready  # noqa: F401
from test_several_processes import (
    MODULES,
    PRECOMPUTED,
    both,
    fixed_completions,
    grpo,
    halved,
    require_same,
    weights,
    with_batch,
)
from test_sft import ready as sft_ready  # noqa: F401

FSDP = ["--shard", "fsdp"]
SAME = {"last_fifth/loss", "steps", "parameters", "accuracy/validation", "logratio/chosen/validation"}


def killed_at(step: int) -> None:
    shard_on_cpus()
    at_training_step(step)


def require_spread(folder: Path, *models: str) -> None:
    """Each of two processes held about half of each model's weights, and both together all of them."""
    notes = [json.loads((folder / f"shards_{rank}.json").read_text()) for rank in (0, 1)]
    assert notes[0].keys() == notes[1].keys() >= {"model", *models}
    for model, first in notes[0].items():
        for name, (own, whole) in first.items():
            assert own + notes[1][model][name][0] == whole, (model, name)
        assert sum(own for own, _ in first.values()) == pytest.approx(
            sum(whole for _, whole in first.values()) / 2, rel=0.1
        ), model


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "args"), [("sft", {}), ("dpo", {}), ("dpo", PRECOMPUTED), ("reward_model", {})]
)
def test_sharded_it_learns_what_one_process_learns(
    kind: str, args: dict[str, Any], request: pytest.FixtureRequest, tmp_path: Path
):
    ready, one, two = request.getfixturevalue(f"{kind}_ready"), tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        copytree(ready, folder)
    config = with_batch(MODULES[kind].CONFIG, **args)
    arguments = stage_runs.command(kind, config, **MODULES[kind].INPUTS)
    assert stage_runs.run(kind, arguments, one) == 0, (one / "err.txt").read_text()
    assert both(kind, arguments + FSDP, two, shard_on_cpus) == [0, 0], (two / "err.txt").read_text()
    require_spread(two, *(("ref_model",) if kind == "dpo" and args != PRECOMPUTED else ()))
    start = None if kind == "reward_model" else ready / "checkpoints/pretrain"
    require_same(one / "checkpoints" / kind, two / "checkpoints" / kind, start)
    require_same_measures(kind, one, two)


def require_same_measures(kind: str, one: Path, two: Path) -> None:
    """What one process measured and two did are the same, as far as neither depends on their number."""
    first, second = (json.loads((at / f"results/{kind}/metrics.json").read_text()) for at in (one, two))
    for name in SAME & first["metrics"].keys():
        assert first["metrics"][name] == pytest.approx(second["metrics"][name], abs=1e-3), name


@pytest.mark.slow
def test_sharded_rollouts_are_those_of_whole_weights(base: Path, tmp_path: Path):
    """Two processes each, with the same draws: completions of unequal length, a reference that follows."""
    plain, spread = (grpo(base, tmp_path / name) for name in ("plain", "sharded"))
    assert both(*plain) == [0, 0], (plain[2] / "err.txt").read_text()
    kind, arguments, two = spread
    assert both(kind, arguments + FSDP, two, shard_on_cpus) == [0, 0], (two / "err.txt").read_text()
    require_spread(two, "ref_model")
    require_same(plain[2] / "checkpoints/grpo", two / "checkpoints/grpo", base / "checkpoints/pretrain")


PPO = {name: value for name, value in test_ppo.PPO.items() if name != "sampler"}


@pytest.mark.slow
def test_ppo_spreads_policy_critic_reference_and_reward_model(base: Path, tmp_path: Path):
    args = {"steps_per_generation": None, "generation_batch_size": 16, "gradient_accumulation_steps": 4}
    config = with_batch(PPO, **args, max_steps=6)
    config["ptx"] = {**PPO["ptx"], "batch_size": 4}
    kind, arguments, one = test_ppo.stage(config, base, tmp_path / "one")
    *_, two = test_ppo.stage(config, base, tmp_path / "two")
    assert stage_runs.run(kind, arguments, one, fixed_completions) == 0, (one / "err.txt").read_text()
    assert both(kind, arguments + FSDP, two, fixed_and_sharded) == [0, 0], (two / "err.txt").read_text()
    require_spread(two, "ref_model", "critic", "scorer0")
    require_same(one / "checkpoints/ppo", two / "checkpoints/ppo", base / "checkpoints/pretrain")
    first, second = (
        json.loads((at / "results/ppo/metrics.json").read_text())["metrics"] for at in (one, two)
    )
    for name in ("last/value_loss", "last/kl", "last/grad_norm/critic", "critic_parameters", "parameters"):
        assert first[name] == pytest.approx(second[name], rel=1e-3, abs=1e-5), name


def fixed_and_sharded() -> None:
    """One process has all its completions scored at once, the other each by itself."""
    from encore.models import reward_model

    def at_once(lengths: list[int], most: int) -> list[list[int]]:
        rows = list(range(len(lengths)))
        return [rows] if os.environ["RANK"] == "0" else [[row] for row in rows]

    reward_model.within_positions = at_once
    shard_on_cpus()
    fixed_completions()


@pytest.mark.slow
def test_in_bf16_log_probabilities_leave_the_model_whole(base: Path, tmp_path: Path):
    kind, arguments, folder = grpo(base, tmp_path / "run", bf16=True, max_steps=5)
    assert both(kind, arguments + FSDP, folder, bf16_and_sharded) == [0, 0], (folder / "err.txt").read_text()


def bf16_and_sharded() -> None:
    from encore.learning.policy import Policy

    plain = Policy.logps

    def logps(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = plain(self, *args, **kwargs)
        assert result.logp.dtype == torch.float32, result.logp.dtype
        return result

    Policy.logps = logps
    shard_on_cpus()


def ppo(base: Path, folder: Path) -> tuple[str, list[str], Path]:
    return test_ppo.stage(halved(PPO), base, folder)


def sft(ready: Path, folder: Path, **keys: Any) -> tuple[str, list[str], Path]:
    copytree(ready, folder)
    return "sft", stage_runs.command("sft", with_batch(test_sft.CONFIG) | keys, **test_sft.INPUTS), folder


@pytest.mark.slow
def test_preferred_weights_are_saved_in_the_type_that_the_recipe_says(
    sft_ready: Path,  # noqa: F811
    tmp_path: Path,
):
    saved = {}
    for dtype in ("float32", "bfloat16"):
        keys = {"evaluate_every": 4} if dtype == "bfloat16" else {}
        kind, arguments, folder = sft(sft_ready, tmp_path / dtype, saved_dtype=dtype, **keys)
        assert both(kind, arguments + FSDP, folder, shard_on_cpus) == [0, 0], (folder / "err.txt").read_text()
        saved[dtype] = weights(folder / "checkpoints/sft")
        assert json.loads((folder / "checkpoints/sft/final/config.json").read_text())["dtype"] == dtype
    assert saved["float32"].keys() == saved["bfloat16"].keys()
    for name, weight in saved["float32"].items():
        assert torch.equal(saved["bfloat16"][name], weight.to(torch.bfloat16)), name
    kept = load_file(tmp_path / "bfloat16/checkpoints/sft/steps/4/model.safetensors")
    assert {f"final/{name}": (w.shape, w.dtype) for name, w in kept.items()} == {
        name: (w.shape, w.dtype) for name, w in saved["bfloat16"].items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "ready", "step"), [(sft, "sft_ready", 10), (grpo, "base", 11), (ppo, "base", 15)]
)
def test_killed_and_rerun_with_the_same_bits(
    stage: Any, ready: str, step: int, request: pytest.FixtureRequest, tmp_path: Path
):
    start = request.getfixturevalue(ready)
    (kind, arguments, whole), (*_, killed) = (stage(start, tmp_path / name) for name in ("whole", "killed"))
    arguments = arguments + FSDP
    assert both(kind, arguments, whole, shard_on_cpus) == [0, 0], (whole / "err.txt").read_text()
    assert any(both(kind, arguments, killed, partial(killed_at, step)))
    assert both(kind, arguments, killed, shard_on_cpus) == [0, 0], (killed / "err.txt").read_text()
    assert "resuming from step" in (killed / "out.txt").read_text()
    assert stage_runs.outputs(whole, kind) == stage_runs.outputs(killed, kind)


@pytest.mark.slow
def test_what_would_not_be_sharded_is_told_in_one_line(sft_ready: Path, tmp_path: Path):  # noqa: F811
    """accelerate spreads nothing on CPUs, and says nothing of it."""
    kind, arguments, folder = sft(sft_ready, tmp_path / "run")
    assert both(kind, arguments + FSDP, folder) == [2, 2]
    assert (
        "error: resources.shard: fsdp spreads weights over several GPUs" in (folder / "out.txt").read_text()
    )
