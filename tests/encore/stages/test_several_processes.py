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
import test_distillation
import test_domains
import test_dpo
import test_ppo
import test_reward_model
import test_sft
import torch
from cpu_shards import shard_on_cpus
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


def with_batch(config: dict[str, Any], **args: Any) -> dict[str, Any]:
    """`config` with its batch stated for any number of processes."""
    own = {**config["args"], **args}
    batch = own["per_device_train_batch_size"] * own.pop("gradient_accumulation_steps")
    return {**config, "global_batch": batch, "args": own}


def require_same(one: Path, two: Path, start: Path | None = None) -> None:
    """The weights below two folders of checkpoints are the same, and not those of `start`."""
    first, second = weights(one), weights(two)
    assert first.keys() == second.keys()
    for name, weight in first.items():
        assert torch.allclose(weight, second[name], atol=1e-4), name
    if start:
        before = weights(start)
        assert any(not torch.allclose(first[n], w, atol=1e-3) for n, w in before.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "args"), [("sft", {}), ("dpo", {}), ("dpo", PRECOMPUTED), ("reward_model", {})]
)
def test_one_batch_gives_the_same_gradients_on_one_and_two(kind, args, request, tmp_path):
    ready, results = request.getfixturevalue(f"{kind}_ready"), []
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        copytree(ready, folder)
    config = with_batch(MODULES[kind].CONFIG, **args)
    arguments = stage_runs.command(kind, config, **MODULES[kind].INPUTS)
    assert stage_runs.run(kind, arguments, folders[0]) == 0, (folders[0] / "err.txt").read_text()
    assert both(kind, arguments, folders[1]) == [0, 0], (folders[1] / "err.txt").read_text()
    for folder, processes in zip(folders, (1, 2), strict=True):
        results.append(json.loads((folder / f"results/{kind}/metrics.json").read_text()))
        made_on = json.loads((folder / f"results/{kind}/provenance.json").read_text())["hardware"]
        assert made_on["processes"] == processes
        assert made_on["global_batch"] == config["global_batch"]
    assert not list(tmp_path.glob("*/checkpoints/*/*.arrow"))
    start = None if kind == "reward_model" else ready / "checkpoints/pretrain"
    require_same(*(folder / "checkpoints" / kind for folder in folders), start)
    for name in ("last_fifth/loss", "steps", "accuracy/validation"):
        if name in results[0]["metrics"]:
            assert results[1]["metrics"][name] == pytest.approx(results[0]["metrics"][name], abs=1e-3), name


def fixed_completions() -> None:
    """Have a policy's completions depend on the prompt and on their place in the group alone."""
    from encore.learning.trainer import RolloutTrainer

    def single_turn(self: Any, prompt_ids: Any, *_: Any) -> tuple[list[list[int]], None]:
        words = len(self.processing_class)
        rows = []
        for number, prompt in enumerate(prompt_ids):
            place = number % self.num_generations
            drawn = torch.Generator().manual_seed(sum(i * t for i, t in enumerate(prompt)) + 7919 * place)
            ids = torch.randint(5, words, (3 + place,), generator=drawn).tolist()
            rows.append([*ids, self.processing_class.eos_token_id])
        return rows, None

    RolloutTrainer._generate_single_turn = single_turn


def require_same_on_one_and_two(kind: str, arguments: list[str], start: Path, folder: Path) -> None:
    """The stage learns the same from fixed completions in one process and in two, and learns something."""
    one, two = folder / "one", folder / "two"
    for place in (one, two):
        copytree(start, place)
    assert stage_runs.run(kind, arguments, one, fixed_completions) == 0, (one / "err.txt").read_text()
    assert both(kind, arguments, two, fixed_completions) == [0, 0], (two / "err.txt").read_text()
    require_same(*(place / "checkpoints" / kind for place in (one, two)), start / "checkpoints/pretrain")


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["grpo", "dapo", "dr_grpo"])
def test_one_rollout_gives_the_same_gradients_on_one_and_two(base: Path, tmp_path: Path, loss: str):
    """Of completions of different lengths, so that a mean over tokens must count those of all processes."""
    args = {"steps_per_generation": None, "generation_batch_size": 16, "loss_type": loss, "max_steps": 6}
    config = with_batch(stage_runs.GRPO, gradient_accumulation_steps=4, **args)
    config["rewards"] = {"accuracy": 0.0, "random": 1.0}
    arguments = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
    require_same_on_one_and_two("grpo", arguments, base, tmp_path)


@pytest.mark.slow
def test_a_student_learns_the_same_on_one_and_two(trained: Path, tmp_path: Path):
    args = {"steps_per_generation": None, "generation_batch_size": 16, "num_generations": 4, "max_steps": 6}
    config = with_batch(test_distillation.DISTILLATION, gradient_accumulation_steps=4, **args)
    config |= {"sampler": None, "on_policy": None}
    config = {name: value for name, value in config.items() if value is not None}
    inputs = {"policy": test_distillation.POLICY, "teacher": test_distillation.TEACHER}
    arguments = stage_runs.command("distillation", config, **inputs)
    require_same_on_one_and_two("distillation", arguments, trained, tmp_path)


def trimmed_completions() -> None:
    """As fixed_completions, of a trainer that has no way to run a whole rectangle."""
    from encore.learning.trainer import RolloutTrainer

    def rectangle(*_: Any, **__: Any) -> None:
        raise AssertionError("a rectangle of padding was run")

    fixed_completions()
    RolloutTrainer._get_per_token_logps_and_entropies = rectangle


def trimmed_and_sharded() -> None:
    trimmed_completions()
    shard_on_cpus()


@pytest.mark.slow
@pytest.mark.parametrize(("shard", "then"), [("none", trimmed_completions), ("fsdp", trimmed_and_sharded)])
def test_several_processes_run_pieces_of_like_length(base: Path, tmp_path: Path, shard: str, then: Any):
    """Two pieces of 8 rows on each of two processes, four of 8 on one: the same gradients."""
    args = {"steps_per_generation": None, "generation_batch_size": 32, "per_device_train_batch_size": 32}
    config = with_batch(stage_runs.GRPO, gradient_accumulation_steps=1, max_steps=6, **args)
    config["rewards"] = {"accuracy": 0.0, "random": 1.0}
    arguments = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        copytree(base, folder)
    assert stage_runs.run("grpo", arguments, one, trimmed_completions) == 0, (one / "err.txt").read_text()
    assert both("grpo", [*arguments, "--shard", shard], two, then) == [0, 0], (two / "err.txt").read_text()
    require_same(one / "checkpoints/grpo", two / "checkpoints/grpo", base / "checkpoints/pretrain")


def halved(config: dict[str, Any], **args: Any) -> dict[str, Any]:
    return config | {"args": config["args"] | {"per_device_train_batch_size": 2} | args}


def grpo(base: Path, folder: Path, **args: Any) -> tuple[str, list[str], Path]:
    copytree(base, folder)
    config = halved(stage_runs.GRPO, **args)
    arguments = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
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
