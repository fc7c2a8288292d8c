"""Before a policy changes its importance ratios are exactly 1, however coarsely it computes."""

import contextlib
from typing import Any

import hand_made
import pytest
import torch

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


def test_the_kl_to_a_policy_of_the_same_weights_starts_at_zero(tmp_path):
    built = hand_made.trainer(tmp_path, **PLAIN, beta=0.04)
    built.parts.policy.reference.model = built.model
    learn(built)
    assert built._metrics["train"]["kl"] == [0.0] * PARTS


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
