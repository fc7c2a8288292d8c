"""A stage in several processes, as torchrun starts them: same training, exact resume, one of them writes."""

import json
import os
import socket
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import stage_runs
import test_domains
import test_dpo
import test_ppo
import test_reward_model
import test_sft
import torch
from safetensors.torch import load_file
from stage_runs import at_training_step
from test_dpo import ready as dpo_ready  # noqa: F401
from test_reward_model import ready as reward_model_ready  # noqa: F401
from test_sft import ready as sft_ready  # noqa: F401

MODULES = {"sft": test_sft, "dpo": test_dpo, "reward_model": test_reward_model}
PRECOMPUTED = {"sync_ref_model": False, "precompute_ref_log_probs": True}


def as_rank(rank: int, port: int, then: Any = None) -> None:
    """Set the environment that torchrun gives a process."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "test"}
    # transformers loads the optimizer of several processes to "cpu:0", a device that torch does not know
    torch.serialization.register_package(
        0, lambda at: None, lambda at, place: at if place == "cpu:0" else None
    )
    if then:
        then()


def both(kind: str, arguments: list[str], folder: Path, then: Any = None) -> list[int]:
    """Exit statuses of two processes of one stage."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    traps = [partial(as_rank, rank, port, then) for rank in (0, 1)]
    return [stage_runs.finish(one) for one in [stage_runs.start(kind, arguments, folder, t) for t in traps]]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    files = sorted((folder / "final").rglob("*.safetensors"))
    return {f"{path.parent.name}/{name}": w for path in files for name, w in load_file(path).items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "args"), [("sft", {}), ("dpo", {}), ("dpo", PRECOMPUTED), ("reward_model", {})]
)
def test_two_with_half_the_micro_batches_learn_the_same(kind, args, request, tmp_path):
    ready, results = request.getfixturevalue(f"{kind}_ready"), []
    for name, accumulated in (("one", 2), ("two", 1)):
        folder = tmp_path / name
        copytree(ready, folder)
        config = MODULES[kind].CONFIG
        own = config["args"] | args | {"gradient_accumulation_steps": accumulated}
        arguments = stage_runs.command(kind, config | {"args": own}, **MODULES[kind].INPUTS)
        status = (
            stage_runs.run(kind, arguments, folder) if name == "one" else sum(both(kind, arguments, folder))
        )
        assert status == 0, (folder / "err.txt").read_text()
        results.append(json.loads((folder / f"results/{kind}/metrics.json").read_text()))
    assert not list(tmp_path.glob("*/checkpoints/*/*.arrow"))
    one, two = (weights(tmp_path / name / "checkpoints" / kind) for name in ("one", "two"))
    start = weights(ready / "checkpoints/pretrain")
    assert one.keys() == two.keys()
    for name, weight in one.items():
        assert torch.allclose(weight, two[name], atol=1e-4), name
    assert kind == "reward_model" or any(not torch.allclose(one[n], w, atol=1e-3) for n, w in start.items())
    for name in ("last_fifth/loss", "steps", "accuracy/validation"):
        if name in results[0]["metrics"]:
            assert results[1]["metrics"][name] == pytest.approx(results[0]["metrics"][name], abs=1e-3), name


def halved(config: dict[str, Any]) -> dict[str, Any]:
    return config | {"args": config["args"] | {"per_device_train_batch_size": 2}}


def grpo(base: Path, folder: Path) -> tuple[str, list[str], Path]:
    copytree(base, folder)
    arguments = stage_runs.command("grpo", halved(stage_runs.GRPO), policy="results/pretrain/metrics.json")
    return "grpo", arguments, folder


def ppo(base: Path, folder: Path) -> tuple[str, list[str], Path]:
    return test_ppo.stage(halved(test_ppo.PPO), base, folder)


def mixed(base: Path, folder: Path) -> tuple[str, list[str], Path]:
    return test_domains.stage(halved(test_domains.MIXED), base, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "step"), [(grpo, 11), (mixed, 14), (ppo, 15)])
def test_killed_in_a_rollout_and_rerun(base: Path, tmp_path: Path, stage: Any, step: int):
    """Each process goes on with its own part of the rollout."""
    unbroken, killed = (stage(base, tmp_path / name) for name in ("whole", "killed"))
    assert both(*unbroken) == [0, 0], (unbroken[2] / "err.txt").read_text()
    assert any(both(*killed, then=partial(at_training_step, step)))
    assert both(*killed) == [0, 0], (killed[2] / "err.txt").read_text()
    assert "resuming from step" in (killed[2] / "out.txt").read_text()
    kind = unbroken[0]
    assert stage_runs.outputs(unbroken[2], kind) == stage_runs.outputs(killed[2], kind)
    printed = (unbroken[2] / "out.txt").read_text()
    assert printed.count(f"{kind}] starting at step 0") == 1  # only the first process prints
