"""Before a policy changes its importance ratios are exactly 1, however coarsely it computes."""

import contextlib
from typing import Any

import hand_made
import pytest
import torch
from transformers import Qwen3ForCausalLM

from encore.learning.minibatch import Minibatch
from encore.learning.trainer import Method

QUESTIONS = ["1+2=", "1+2+3=", "1+2+3+4+5=", "4+4+4+4+4+4+4="]
ROWS, PARTS = 48, 3  # of a rollout; a minibatch has two pieces of rows of like length
PROMPTS = [{"prompt": f"<user>{QUESTIONS[i // 4 % 4]}<assistant>"} for i in range(ROWS)]
PLAIN: dict[str, Any] = {
    "bf16": True,
    "loss_type": "grpo",
    "epsilon": 3e-4,
    "max_completion_length": 14,
    "per_device_train_batch_size": ROWS // PARTS,
    "steps_per_generation": PARTS,
}


def learn(built: Any) -> list[Minibatch]:
    """Sample a rollout, ragged, and compute the losses of its minibatches, with no update between them."""
    parts = []
    for step in range(PARTS):
        built._step = step
        parts.append(built._prepare_inputs(PROMPTS))
        built._compute_loss(built.model_wrapped, parts[-1]).backward()
    assert len(torch.cat([part.completion_mask.sum(dim=1) for part in parts]).unique()) > 3
    return parts


@pytest.mark.parametrize(
    ("method", "args"),
    [
        (Method(), {"importance_sampling_level": "sequence"}),
        (Method(), {"gradient_checkpointing": True}),
        (Method(importance_ratio="none"), {}),
        (Method(lean=True), {}),
    ],
    ids=["sequence", "checkpointing", "no ratio", "lean"],
)
def test_ratios_of_bf16_start_at_one(method, args, tmp_path):
    built = hand_made.trainer(tmp_path, method, **PLAIN | args)
    learn(built)
    measured = built.parts.measures.ratios.flush()
    assert measured["ratio/deviation"] == measured["clip_fraction"] == 0.0


def beside_a_copy(tmp_path, **args: Any) -> tuple[Any, dict[str, torch.dtype]]:
    """A trainer whose reference has the weights of its policy; and the types of the reference's weights."""
    config = hand_made.trainer(tmp_path, **PLAIN).model.config
    torch.manual_seed(0)  # as the policy is made
    built = hand_made.trainer(tmp_path, Method(reference=Qwen3ForCausalLM(config)), **PLAIN | args, beta=0.04)
    reference = built.parts.policy.reference.model
    return built, {name: weight.dtype for name, weight in reference.named_parameters()}


def test_the_kl_to_a_reference_of_the_same_weights_starts_at_zero_although_it_is_half_as_large(tmp_path):
    built, dtypes = beside_a_copy(tmp_path)
    assert built.parts.policy.reference.model is not built.model
    half = {name for name, dtype in dtypes.items() if dtype is torch.bfloat16}
    assert half == {name for name in dtypes if "_proj" in name}
    assert {*dtypes.values()} == {torch.bfloat16, torch.float32}
    learn(built)
    assert built._metrics["train"]["kl"] == [0.0] * PARTS


@pytest.mark.parametrize("args", [{"bf16": False}, {"sync_ref_model": True, "ref_model_sync_steps": 1}])
def test_a_reference_that_autocast_does_not_round_or_that_moves_keeps_its_precision(args, tmp_path):
    assert {*beside_a_copy(tmp_path, **args)[1].values()} == {torch.float32}


def test_ratios_of_a_rollout_of_several_rounds_start_at_one(tmp_path, monkeypatch):
    def accuracy(completions, **columns):  # a third of the groups is not mixed
        return [float(i // hand_made.GROUP % 3 > 0 and i % 2) for i in range(len(completions))]

    monkeypatch.setattr(hand_made, "accuracy", accuracy)
    built = hand_made.trainer(tmp_path, Method(max_rounds=3), **PLAIN)
    built.train_dataset = PROMPTS
    learn(built)
    assert built.parts.rollouts.rounds_drawn == 2
    assert built.parts.measures.ratios.flush()["ratio/deviation"] == 0.0


def test_float32_on_a_cpu_keeps_what_was_computed_when_it_was_sampled(tmp_path):
    built = hand_made.trainer(tmp_path, **PLAIN | {"bf16": False})
    before = learn(built)
    kept = [built.parts.policy.shuffled(part).old for part in before]
    assert all(old is part.old for old, part in zip(kept, before, strict=True))
    assert built.parts.measures.ratios.flush()["ratio/deviation"] < 1e-5


def test_the_reference_of_an_adapter_is_computed_while_the_adapter_is_off(tmp_path):
    """It has no model of its own, so it cannot be computed later."""
    built = hand_made.trainer(tmp_path, **PLAIN, beta=0.04)
    off = []
    built.model.disable_adapter = lambda: contextlib.nullcontext(off.append(1))
    learn(built)
    assert off
    assert max(built._metrics["train"]["kl"]) < 1e-3
    assert built.parts.measures.ratios.flush()["ratio/deviation"] == 0.0
