"""Before a policy changes its importance ratios are exactly 1, however coarsely it computes."""

import contextlib
from typing import Any

import hand_made
import pytest
import torch
from trl.trainer import grpo_trainer

from encore.learning.dynamic_sampling import DynamicSampling
from encore.learning.grpo_objective import Extension

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


def learn(built: Any) -> list[dict[str, Any]]:
    """Sample a rollout, ragged, and compute the losses of its minibatches, with no update between them."""
    parts = []
    for step in range(PARTS):
        built._step = step
        parts.append(built._prepare_inputs(PROMPTS))
        built._compute_loss(built.model_wrapped, parts[-1]).backward()
    assert len(torch.cat([part["completion_mask"].sum(dim=1) for part in parts]).unique()) > 3
    return parts


@pytest.mark.parametrize(
    ("lean", "extension", "args"),
    [
        (False, Extension(), {"importance_sampling_level": "sequence"}),
        (False, Extension(), {"gradient_checkpointing": True}),
        (False, Extension(importance_ratio="none"), {}),
        (True, Extension(), {}),
    ],
    ids=["sequence", "checkpointing", "no ratio", "lean"],
)
def test_ratios_of_bf16_start_at_one(lean, extension, args, tmp_path):
    built = hand_made.trainer(tmp_path, extension, **PLAIN | args)
    built.lean = lean
    learn(built)
    measured = built.ratios.flush()
    assert measured["ratio/deviation"] == measured["clip_fraction"] == 0.0


def test_the_kl_to_a_policy_of_the_same_weights_starts_at_zero(tmp_path):
    built = hand_made.trainer(tmp_path, **PLAIN)
    built.beta, built.ref_model = 0.04, built.model
    learn(built)
    assert built._metrics["train"]["kl"] == [0.0] * PARTS


def test_ratios_of_a_rollout_of_several_rounds_start_at_one(tmp_path, monkeypatch):
    def accuracy(completions, **columns):  # a third of the groups is not mixed
        return [float(i // hand_made.GROUP % 3 > 0 and i % 2) for i in range(len(completions))]

    monkeypatch.setattr(hand_made, "accuracy", accuracy)
    built = hand_made.trainer(tmp_path, **PLAIN)
    built.__class__, built.max_rounds, built.train_dataset = DynamicSampling, 3, PROMPTS
    learn(built)
    assert built.rounds_drawn == 2
    assert built.ratios.flush()["ratio/deviation"] == 0.0


def test_float32_on_a_cpu_keeps_what_was_computed_when_it_was_sampled(tmp_path, monkeypatch):
    built = hand_made.trainer(tmp_path, **PLAIN | {"bf16": False})
    monkeypatch.setattr(built, "_compute_again", None)
    learn(built)
    assert built.ratios.flush()["ratio/deviation"] < 1e-5


def test_the_reference_of_an_adapter_is_computed_while_the_adapter_is_off(tmp_path, monkeypatch):
    """It has no model of its own, so it cannot be computed later."""
    built = hand_made.trainer(tmp_path, **PLAIN)
    built.beta, built.model.peft_config = 0.04, {}
    monkeypatch.setattr(grpo_trainer, "use_adapter", lambda model, adapter_name: contextlib.nullcontext())
    learn(built)
    assert max(built._metrics["train"]["kl"]) < 1e-3
    assert built.ratios.flush()["ratio/deviation"] == 0.0
