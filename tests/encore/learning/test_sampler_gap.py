"""The gap between a sampler's log-probabilities and the trainer's is measured, whoever samples."""

from types import SimpleNamespace
from typing import Any

import hand_made
import pytest
import torch

from encore.learning import samplers
from encore.learning.minibatch import Tokens
from encore.learning.sampler_gap import SamplerGap, precision
from encore.learning.trainer import Method

ONE_PROCESS = SimpleNamespace(reduce=lambda value, reduction: value)


def test_the_mean_is_over_the_tokens_in_the_loss_that_the_sampler_knows():
    gap = SamplerGap()
    logps = torch.zeros(2, 3)
    sampled = torch.tensor([[0.1, -0.3, 9.0], [0.2, torch.nan, 9.0]])
    gap.add(sampled, logps, torch.tensor([[1, 1, 0], [1, 1, 0]]), ONE_PROCESS)
    gap.add(sampled, logps, torch.zeros(2, 3), ONE_PROCESS)
    assert gap.flush()["sampler_gap"] == pytest.approx(0.2)
    assert gap.flush() == {}


def learn(built: Any) -> dict[str, float]:
    """The gap of a rollout of two minibatches, of which the first changes the policy."""
    for step in (0, 1):
        built._step = step
        inputs = built._prepare_inputs([{"prompt": "<user>1+2=<assistant>"}] * 2 * hand_made.BATCH)
        built._compute_loss(built.model, inputs).backward()
        with torch.no_grad():
            for weight in built.model.parameters():
                weight.mul_(3)
    return built.parts.measures.gap.flush()


def test_our_own_sampler(tmp_path, monkeypatch):
    built = hand_made.trainer(tmp_path, Method(lean=True), steps_per_generation=2)
    assert learn(built)["sampler_gap"] < 1e-6

    plain = samplers.sample

    def far(*args):
        ids, logps = plain(*args)
        return ids, logps + 0.02

    monkeypatch.setattr(samplers, "sample", far)
    assert learn(built)["sampler_gap"] == pytest.approx(0.02, abs=1e-5)


@pytest.mark.parametrize(
    ("correction", "bf16"), [(False, False), (True, False), (True, True)], ids=["plain", "corrected", "bf16"]
)
def test_vllm_with_and_without_correction(correction, bf16, tmp_path):
    options = {"vllm_importance_sampling_correction": correction, "bf16": bf16}
    built = hand_made.trainer(tmp_path, steps_per_generation=2, **options)
    built.parts.policy.corrects = correction

    def generate(prompts, **_):
        """What VLLMGeneration returns: of each token the likeliest log-probabilities, here its own alone."""
        ids = [[4 + i % 5, 7, 8] for i in range(len(prompts))]
        context, said = torch.tensor(prompts), torch.tensor(ids)
        tokens = Tokens(context, torch.ones_like(context), said, torch.ones_like(said))
        with torch.no_grad():
            found = built.parts.policy.logps(built.model, tokens).logp
        return prompts, ids, [[[value + 0.1] for value in row] for row in found.tolist()], None

    built.use_vllm, built._last_loaded_step = True, 0
    built.vllm_generation = SimpleNamespace(generate=generate)
    close = 0.02 if bf16 else 1e-5
    assert learn(built)["sampler_gap"] == pytest.approx(0.1, abs=close)
    trl = built._metrics["train"].get("sampling/sampling_logp_difference/mean")
    assert trl == ([pytest.approx(0.1, abs=close)] if correction else None)


@pytest.mark.parametrize(("bf16", "expected"), [(False, "full"), (True, "half")])
def test_the_precision_is_that_of_the_forward_pass(bf16, expected, tmp_path):
    built = hand_made.trainer(tmp_path, bf16=bf16)
    assert precision(built.args, built.model) == expected
    assert precision(built.args, built.model, rounded_sampler=True) == "rounded"
    assert precision(built.args, built.model.bfloat16()) == "half"
