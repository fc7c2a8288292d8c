"""Weights of 4 bits below adapters: what is saved is a plain model that says what was trained.

bitsandbytes is an extra, which the extra `test` has: where it is not installed, these tests are skipped.
"""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import stage_runs
import test_lora
import test_reward_model
import torch
from stage_runs import at_training_step
from test_dpo import ready as dpo_ready  # noqa: F401
from test_lora import ppo_ready  # noqa: F401
from test_reward_model import ready as reward_model_ready  # noqa: F401
from test_several_processes import both, require_same, weights, with_batch
from test_sft import ready as sft_ready  # noqa: F401

from encore.models import language_model
from encore.models.quantized import loading
from encore.recipe.kinds.stage import Lora

pytest.importorskip("bitsandbytes")

QLORA = {**test_lora.LORA, "quantized": "nf4"}
POLICIES = {kind: ({**config, "lora": QLORA}, *rest) for kind, (config, *rest) in test_lora.STAGES.items()}
POLICIES["ppo"][0]["critic"] = "policy"  # a copy of the policy, in 4 bits too
del POLICIES["ppo"][0]["sampler"]  # lean does not read weights of 4 bits


def few(config: dict[str, Any], **args: Any) -> dict[str, Any]:
    """`config` with three steps, and a checkpoint after the second."""
    return {**config, "args": {**config["args"], "max_steps": 3, "save_steps": 2, **args}}


def opened(folder: Path) -> Any:
    """The start of a stage in `folder`, in 4 bits as it trained it."""

    class Args:
        bf16, device = False, "cpu"

    source = language_model.Source(str(folder / "checkpoints/pretrain/final"), None, "")
    return language_model.load(source, **loading(Lora(**QLORA), Args, {}))


@pytest.mark.slow
@pytest.mark.parametrize("kind", POLICIES)
def test_the_product_is_plain(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    """Its weights are those of 4 bits, dequantized, and a change of low rank."""
    config, inputs, fixture = POLICIES[kind]
    ready = request.getfixturevalue(fixture)
    copytree(ready, tmp_path / "run")
    arguments = stage_runs.command(kind, few(config), **inputs)
    assert stage_runs.run(kind, arguments, tmp_path / "run") == 0, (tmp_path / "run/err.txt").read_text()
    start, after = (weights(tmp_path / "run/checkpoints" / k) for k in ("pretrain", kind))
    quantized = opened(tmp_path / "run").dequantize().state_dict()
    assert start.keys() == after.keys()
    for name, weight in after.items():
        own = quantized[name.removeprefix("final/")]
        if "_proj" in name:
            assert not torch.equal(own, start[name])
            assert int(torch.linalg.matrix_rank(weight - own, tol=1e-6)) == test_lora.RANK
        else:
            assert torch.equal(weight, start[name])
    saved = json.loads((tmp_path / f"run/checkpoints/{kind}/final/config.json").read_text())
    assert "quantization_config" not in saved
    assert saved["dtype"] == "float32"


@pytest.mark.slow
def test_killed_and_rerun_in_the_dtype_that_the_recipe_says(sft_ready: Path, tmp_path: Path):  # noqa: F811
    config, inputs, _ = POLICIES["sft"]
    config = few({**config, "saved_dtype": "bfloat16"})
    arguments = stage_runs.command("sft", config, **inputs)
    whole, killed, wide = (tmp_path / name for name in ("whole", "killed", "wide"))
    for folder in (whole, killed, wide):
        copytree(sft_ready, folder)
    assert stage_runs.run("sft", arguments, whole) == 0, (whole / "err.txt").read_text()
    assert stage_runs.run("sft", arguments, killed, in_the_third_step) == -9
    assert stage_runs.run("sft", arguments, killed) == 0, (killed / "err.txt").read_text()
    assert "resuming from step 2" in (killed / "out.txt").read_text()
    assert stage_runs.outputs(whole, "sft") == stage_runs.outputs(killed, "sft")
    assert stage_runs.run("sft", stage_runs.command("sft", few(POLICIES["sft"][0]), **inputs), wide) == 0
    narrow, full = (weights(folder / "checkpoints/sft") for folder in (whole, wide))
    assert {w.dtype for w in narrow.values()} == {torch.bfloat16}
    for name, weight in full.items():
        assert torch.allclose(narrow[name].float(), weight, rtol=2**-6, atol=1e-3), name


@pytest.mark.slow
def test_two_processes_have_the_same_adapters(sft_ready: Path, tmp_path: Path):  # noqa: F811
    config, inputs, _ = POLICIES["sft"]
    arguments = stage_runs.command("sft", with_batch(few(config)), **inputs)
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        copytree(sft_ready, folder)
    assert stage_runs.run("sft", arguments, one) == 0, (one / "err.txt").read_text()
    assert both("sft", arguments, two) == [0, 0], (two / "err.txt").read_text()
    require_same(one / "checkpoints/sft", two / "checkpoints/sft", sft_ready / "checkpoints/pretrain")


def in_the_third_step() -> None:
    at_training_step(2 * 2 + 1)


@pytest.mark.slow
def test_a_reward_model(reward_model_ready: Path, tmp_path: Path):  # noqa: F811
    config = {**few(test_reward_model.CONFIG, eval_steps=2), "lora": QLORA, "members": 1}
    copytree(reward_model_ready, tmp_path / "run")
    arguments = stage_runs.command("reward_model", config, **test_reward_model.INPUTS)
    assert stage_runs.run("reward_model", arguments, tmp_path / "run") == 0, (
        tmp_path / "run/err.txt"
    ).read_text()
    after = weights(tmp_path / "run/checkpoints/reward_model")
    quantized = opened(tmp_path / "run").dequantize().state_dict()
    for name, weight in after.items():
        own = quantized.get(name.removeprefix("member0/"))
        if own is not None and "_proj" in name:
            assert int(torch.linalg.matrix_rank(weight - own, tol=1e-6)) == test_lora.RANK
    assert len([name for name in after if "_proj" in name]) == 7
    drawn = torch.randn(after["member0/score.weight"].shape, generator=torch.Generator().manual_seed(3))
    moved = after["member0/score.weight"] - drawn / (drawn.shape[1] + 1) ** 0.5
    assert 1e-3 < moved.abs().max() < 0.1
