"""Rollouts sampled ahead: which weights sample them, how stale they are, and what the loss makes of it."""

import copy
from typing import Any

import hand_made
import pytest
import torch
from torch import Tensor
from transformers import Qwen3ForCausalLM

from encore.learning import samplers
from encore.learning.minibatch import Minibatch
from encore.learning.prompt_order import rows_of
from encore.learning.trainer import Method

ROLLOUTS = 9
UPDATES = 2  # micro-batches of a rollout, each an update
ROWS = UPDATES * hand_made.BATCH
QUESTIONS = [f"<user>{a}+{b}=<assistant>" for a in range(1, 4) for b in range(1, 4)]  # two rollouts an epoch


def begun(folder: Any, ahead: int, **args: Any) -> Any:
    """A trainer that samples `ahead` rollouts ahead."""
    method = Method(lean=True, max_staleness=ahead)
    built = hand_made.trainer(folder, method, steps_per_generation=UPDATES, **args)
    built.train_dataset = [{"prompt": question} for question in QUESTIONS]
    built.state.max_steps = ROLLOUTS * UPDATES
    return built


def learn(built: Any, rollout: int) -> Minibatch:
    """Begin to learn from a rollout, whose rows the dataloader gives; returns its first minibatch."""
    built._step = rollout * UPDATES
    return built._prepare_inputs(rows_of(built, rollout, ROWS))


def change(built: Any, by: float) -> None:
    """Change the weights, as an update does."""
    with torch.no_grad():
        for weight in built.model.parameters():
            weight.mul_(1 + by)


@pytest.mark.parametrize("ahead", [0, 1, 4, ROLLOUTS - 1])
def test_the_version_that_samples_is_the_stated_number_of_rollouts_older(ahead, tmp_path, monkeypatch):
    built = begun(tmp_path, ahead)
    plain, by = samplers.sample, []

    def noted(model, *args):
        by.append(version)
        return plain(model, *args)

    monkeypatch.setattr(samplers, "sample", noted)
    shown = []
    for version in range(ROLLOUTS):
        learn(built, version)
        assert len(by) == min(version + ahead + 1, ROLLOUTS)  # at the end nothing is sampled in vain
        log = built.parts.measures.log
        shown.append((log.pop("staleness/mean"), log.pop("staleness/max")))
        built._step += 1
        built._prepare_inputs([])  # the second update has no new rollout
        change(built, 0.01)
    assert by == [max(rollout - ahead, 0) for rollout in range(ROLLOUTS)]
    measured = [rollout - version for rollout, version in enumerate(by)]
    assert measured == [min(rollout, ahead) for rollout in range(ROLLOUTS)]
    assert shown == [([value], [value]) for value in measured]


def test_a_log_line_of_several_rollouts_has_their_mean_and_largest_staleness(tmp_path):
    built = begun(tmp_path, 4)
    for rollout in range(4):
        learn(built, rollout)
    log = built.parts.measures.log
    assert log["staleness/mean"] == [0, 1, 2, 3]
    assert log["staleness/max"] == [3]


def test_the_rest_of_the_queue_is_in_a_checkpoint(tmp_path):
    """A trainer with other weights that gets the state of the parts goes on with the same rollouts."""
    built, other = begun(tmp_path, 2), begun(tmp_path, 2)
    learn(built, 0)
    change(other, 0.5)
    hand_made.resumed(built, other)
    for rollout in (1, 2):
        rows = []
        for each in (built, other):
            learn(each, rollout)
            parts = each.parts.rollouts.kept
            rows.append(sorted(torch.cat([part.completion_ids for part in parts]).tolist()))
        assert rows[0] == rows[1]
        assert other.parts.rollouts.sampler.staleness == rollout


def reference(model: Any, batch: Minibatch) -> Tensor:
    """The log-probabilities of completions in float64, a row at a time and without padding, (B, T)."""
    exact = Qwen3ForCausalLM(model.config).double()
    exact.load_state_dict(model.state_dict())
    found = torch.zeros(batch.completion_ids.shape, dtype=torch.float64)
    for row in range(len(batch)):
        prompt = batch.prompt_ids[row][batch.prompt_mask[row].bool()]
        said = batch.completion_ids[row][batch.completion_mask[row].bool()]
        with torch.no_grad():
            logits = exact(torch.cat([prompt, said])[None]).logits[0]
        before = logits.log_softmax(dim=-1)[len(prompt) - 1 : -1]
        found[row, : len(said)] = before.gather(1, said[:, None])[:, 0]
    return found


def stale(built: Any) -> tuple[Minibatch, Tensor, Tensor]:
    """A rollout of staleness 1, and its log-probabilities by the weights that sampled it and by those now."""
    built.reward_funcs = [lambda completions, **_: [float(i % 3) for i in range(len(completions))]] * 2
    learn(built, 0)
    older = copy.deepcopy(built.model)
    change(built, 0.2)
    batch = learn(built, 1)
    return batch, reference(older, batch), reference(built.model, batch)


def loss_of(terms: Tensor, batch: Minibatch) -> Tensor:
    """The mean over completions of the means over tokens."""
    mask = batch.completion_mask
    return ((terms * mask).sum(dim=1) / mask.sum(dim=1)).mean()


@pytest.mark.parametrize(
    ("mode", "most"), [("token_truncate", 1.05), ("token_truncate", 2.0), ("token_mask", 1.3)]
)
def test_the_weights_of_a_stale_rollout_are_those_of_a_reference_in_float64(mode, most, tmp_path):
    keys = {"mode": mode, "clip_max": most, "correction": True}
    built = begun(tmp_path, 1, **{f"vllm_importance_sampling_{key}": value for key, value in keys.items()})
    batch, sampled, present = stale(built)
    mask = batch.completion_mask.bool()
    plain = (present - sampled).exp()
    assert plain[mask].min() < 0.9
    assert (plain[mask] > most).any() or most == 2.0
    weights = plain.clamp(max=most) if mode == "token_truncate" else plain.masked_fill(plain > most, 0.0)
    torch.testing.assert_close(batch.sampled.double()[mask], sampled[mask], rtol=0, atol=1e-5)
    torch.testing.assert_close(batch.old.double()[mask], present[mask], rtol=0, atol=1e-5)
    torch.testing.assert_close(batch.correction.double()[mask], weights[mask], rtol=0, atol=2e-5)
    loss = built._compute_loss(built.model, batch)
    expected = loss_of(
        -weights * batch.advantages[:, None], batch
    )  # the ratio to pi_old is 1 before an update
    torch.testing.assert_close(loss.double(), expected, rtol=0, atol=1e-5)
    assert built.parts.measures.ratios.flush()["ratio/at_start"] < 1e-5
    assert "sampler_gap" not in built.parts.measures.gap.flush()


def test_without_the_correction_the_clip_counts_from_the_weights_that_sampled(tmp_path):
    built = begun(tmp_path, 1, vllm_importance_sampling_correction=False)
    batch, sampled, present = stale(built)
    assert batch.correction is None
    ratio, gains = (present - sampled).exp(), batch.advantages[:, None]
    mask = batch.completion_mask.bool()
    assert (ratio[mask] < 0.8).any()
    torch.testing.assert_close(batch.old.double()[mask], sampled[mask], rtol=0, atol=1e-5)
    expected = loss_of(-torch.minimum(ratio * gains, ratio.clamp(0.8, 1.2) * gains), batch)
    loss = built._compute_loss(built.model, batch)
    torch.testing.assert_close(loss.double(), expected, rtol=0, atol=1e-5)
    measured = built.parts.measures.ratios.flush()
    assert measured["ratio/deviation"] == pytest.approx((ratio[mask] - 1).abs().max().item(), abs=1e-4)
    assert "ratio/at_start" not in measured  # it need not be 0, so it is no sign of a mistake


def test_a_fresh_rollout_is_learned_from_as_in_synchronous_training(tmp_path):
    for ahead in (0, 1):
        built = begun(tmp_path, ahead, vllm_importance_sampling_correction=False)
        built._compute_loss(built.model, learn(built, 0))
        assert built.parts.measures.ratios.flush()["ratio/at_start"] < 1e-5
        assert built.parts.measures.gap.flush()["sampler_gap"] < 1e-5


@pytest.mark.parametrize("correction", [True, False])
def test_in_half_precision_the_older_policy_is_not_computed_anew(correction, tmp_path):
    built = begun(tmp_path, 1, bf16=True, vllm_importance_sampling_correction=correction)
    batch, _, _ = stale(built)
    built._compute_loss(built.model, batch)
    measured = built.parts.measures.ratios.flush()
    if correction:
        assert measured["ratio/deviation"] == 0.0  # pi_old is the present policy in the same minibatch
    else:
        assert torch.equal(batch.old, batch.sampled)
        assert measured["ratio/deviation"] > 0.05


def test_a_token_whose_probability_the_sampler_does_not_know_has_ratio_1(tmp_path):
    built = begun(tmp_path, 1, vllm_importance_sampling_correction=False)
    batch, _, _ = stale(built)
    batch.old[:, 0] = torch.nan
    loss = built._compute_loss(built.model, batch)
    assert loss.isfinite()
    with torch.no_grad():
        now = hand_made.logps(built, batch)
        kept = built.loss_batch(batch, now, now).old
    assert torch.equal(kept[:, 0], now[:, 0])
    assert torch.equal(kept[:, 1:], batch.old[:, 1:])
