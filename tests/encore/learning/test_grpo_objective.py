"""What the keys of a stage do to the loss, on rollouts made by hand and a tiny model."""

from dataclasses import replace

import pytest
import torch
from hand_made import (
    BATCH,
    GROUP,
    TIME,
    TOKENIZER,
    WORLD,
    gradient,
    logps,
    made,
    resumed,
    rollout,
    scored,
    trainer,
)

from encore.errors import UserError
from encore.learning.minibatch import Minibatch
from encore.learning.rollouts import Options
from encore.learning.trainer import Method
from encore.objectives import process_supervision
from encore.rewards import step_rewards

REWARDS = [[float(i % 2), 0.0] for i in range(BATCH)]


def noisy(size: float) -> Method:
    return Method(Options(old_logp_noise=size))


def test_gspo_token_is_gspo_where_advantages_are_constant(tmp_path):
    """GSPO §4.3: same value, same clipped outputs, same gradient."""
    found = []
    for level, ratio in (("sequence", None), ("token", "sequence_token")):
        built = trainer(
            tmp_path, Method(importance_ratio=ratio), importance_sampling_level=level, epsilon=0.05
        )
        batch = rollout(built)
        loss = built._compute_loss(built.model, batch)
        metrics = built.parts.measures.ratios.flush()
        assert 0 < metrics["clip_fraction"] < 1
        found.append((loss, gradient(built, loss), metrics))
        torch.testing.assert_close(batch.old, rollout(built).old)  # kept for later epochs
    for plain, token in zip(*(one[:2] for one in found), strict=True):
        torch.testing.assert_close(token, plain, rtol=1e-5, atol=1e-7)
    assert found[0][2] == found[1][2]


def test_gspo_token_with_advantages_of_tokens(tmp_path):
    """Eq. 13: 1/|o| sum_t min(s_t A_t, clip(s_t) A_t) with s_t = sg[s] pi/sg[pi]."""
    built = trainer(tmp_path, Method(importance_ratio="sequence_token"), epsilon=0.05, epsilon_high=0.1)
    advantages = torch.randn(BATCH, TIME, generator=torch.Generator().manual_seed(1))
    batch = replace(rollout(built), advantages=advantages)
    loss = built._compute_loss(built.model, batch)
    now, mask, advantage = logps(built, batch), batch.completion_mask, batch.advantages
    lengths = mask.sum(dim=1, keepdim=True)
    sequence = (((now - batch.old) * mask).sum(dim=1, keepdim=True) / lengths).exp().detach()
    ratio = sequence * (now - now.detach()).exp()
    terms = torch.min(ratio * advantage, ratio.clamp(0.95, 1.1) * advantage)
    expected = -((terms * mask).sum(dim=1, keepdim=True) / lengths).mean()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient(built, loss), gradient(built, expected), rtol=1e-5, atol=1e-7)


def test_no_ratio_is_the_naive_policy_gradient(tmp_path):
    built = trainer(tmp_path, Method(importance_ratio="none"), epsilon=0.01)
    batch = made(built, rollout(built), REWARDS)
    loss = built._compute_loss(built.model, batch)
    mask = batch.completion_mask
    naive = -((batch.advantages[:, None] * logps(built, batch) * mask).sum(1) / mask.sum(1)).mean()
    torch.testing.assert_close(gradient(built, loss), gradient(built, naive), rtol=1e-5, atol=1e-7)
    metrics = built.parts.measures.ratios.flush()
    assert metrics["clip_fraction"] == 0
    assert metrics["ratio/token_std"] > 0.1  # how far the policy went is measured all the same


def test_one_pass_of_the_model_is_enough(tmp_path):
    passes = []
    for method in (Method(), Method(Options(old_logp_noise=0.1), importance_ratio="sequence_token")):
        built = trainer(tmp_path, method)
        batch = built_rollout(built)
        calls: list[int] = []
        built.model.register_forward_hook(lambda *args, calls=calls: calls.append(1))
        built._compute_loss(built.model, batch)
        passes.append(len(calls))
    assert passes == [1, 1]


def built_rollout(built) -> Minibatch:
    return made(built, rollout(built), REWARDS)


def test_noise_is_that_of_the_seed_and_the_rollout(tmp_path):
    built, again, other = (trainer(tmp_path, noisy(0.5), seed=seed) for seed in (1, 1, 2))
    state = torch.get_rng_state()
    first = built_rollout(built).noise
    resumed(built, again)
    second = built_rollout(built).noise
    assert torch.equal(torch.get_rng_state(), state)  # sampling goes on as without
    assert torch.equal(built_rollout(again).noise, second)
    assert not torch.equal(first, second)
    assert not torch.equal(built_rollout(other).noise, first)
    assert torch.stack([first, second]).std().item() == pytest.approx(0.5, rel=0.25)


@pytest.mark.parametrize("aligned", [True, False], ids=["one update", "several"])
def test_noise_is_in_the_ratio_of_the_loss(tmp_path, aligned):
    """Also where no old log-probabilities are computed, for there is one update a rollout."""
    built = trainer(tmp_path, noisy(0.3), epsilon=0.2)
    batch = rollout(built, spread=0.0)
    batch = made(built, replace(batch, old=None) if aligned else batch, REWARDS)
    loss = built._compute_loss(built.model, batch)
    mask, advantage = batch.completion_mask, batch.advantages[:, None]
    now = logps(built, batch)
    ratio = (now - now.detach() - batch.noise).exp()
    terms = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    expected = -((terms * mask).sum(dim=1) / mask.sum(dim=1)).mean()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient(built, loss), gradient(built, expected), rtol=1e-4, atol=1e-6)
    metrics = built.parts.measures.ratios.flush()
    assert metrics["ratio/at_start"] < 1e-5  # of the policy without the noise
    assert metrics["ratio/deviation"] > 0.1


@pytest.mark.parametrize("loss_type", ["dapo", "cispo"])
@pytest.mark.parametrize(("window", "slices", "epochs"), [(2, 4, 1), (1, 4, 2), (4, 4, 1), (2, 4, 2)])
def test_the_tokens_of_an_optimizer_step_are_the_normaliser(tmp_path, loss_type, window, slices, epochs):
    shape = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": window}
    built = trainer(
        tmp_path,
        loss_type=loss_type,
        num_iterations=epochs,
        steps_per_generation=slices,
        **shape,
        epsilon_high=9.0,
    )
    rows = scored(built, rollout(built, seed=3), REWARDS)
    given, losses = [], []
    for built._step in range(slices * epochs):
        part = built._prepare_inputs(rows)
        given.append(part)
        losses.append(built._compute_loss(built.model, part))
    for start in range(0, len(given), window):
        parts = given[start : start + window]
        tokens = sum(part.completion_mask.sum() for part in parts)
        total = 0.0
        for part in parts:
            now, advantage = logps(built, part), part.advantages[:, None]
            ratio = (now - part.old).exp()
            if loss_type == "cispo":
                terms = ratio.clamp(max=9.0).detach() * advantage * now
            else:
                terms = torch.min(ratio * advantage, ratio.clamp(0.8, 10) * advantage)
            total = total - (terms * part.completion_mask).sum() / tokens
        summed = sum(losses[start : start + window])
        torch.testing.assert_close(summed, total)
        torch.testing.assert_close(gradient(built, summed), gradient(built, total), rtol=1e-4, atol=1e-6)
    lengths = [part.completion_mask.sum().item() for part in given[:slices]]
    assert len(set(lengths)) > 1, "equal slices would prove nothing"


def test_a_normaliser_over_several_rollouts_is_refused(tmp_path):
    shape = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "steps_per_generation": 2}
    trainer(tmp_path, **shape)
    with pytest.raises(
        UserError, match="steps_per_generation: 2 is no multiple of gradient_accumulation_steps"
    ):
        trainer(tmp_path, loss_type="dapo", **shape)


def test_advantages_of_the_stage(tmp_path):
    """With weights 1 and 0.5: the summed reward, or for `positive` and `process` accuracy alone."""
    rewards = [[1, 0], [0, 1], [0, 0], [1, 1], [0, 1], [0, 1], [0, 1], [0, 0]]
    total = torch.tensor([[a + 0.5 * b for a, b in rewards]])
    given = [[float(a), float(b)] for a, b in rewards]

    def found(name: str) -> torch.Tensor:
        built = trainer(tmp_path, Method(advantage=name), reward_weights=[1.0, 0.5])
        first = made(built, rollout(built), given).advantages
        second = made(built, rollout(built), given).advantages
        torch.testing.assert_close(first, second)  # same rewards, so the same mean of earlier ones too
        return first

    groups = total.view(2, GROUP)
    torch.testing.assert_close(found("raw"), total.flatten())
    torch.testing.assert_close(found("moving_average"), (total - total.mean()).flatten())
    torch.testing.assert_close(
        found("leave_one_out"), ((groups - groups.mean(1, keepdim=True)) * GROUP / (GROUP - 1)).flatten()
    )
    assert found("positive").tolist() == [a for a, _ in rewards]
    assert found("best").tolist() == [0, 0, 0, 1.5, 0.5, 0.5, 0.5, 0]


def test_process_advantages_reach_the_loss_token_by_token(tmp_path):
    texts = ["1+2=3,", "1+2=4,", "3", "12"] * 2
    ids = TOKENIZER(texts, padding=True, padding_side="right", return_tensors="pt")
    built = trainer(tmp_path, Method(advantage="process", read_steps=step_rewards.reader(WORLD, TOKENIZER)))
    sampled = replace(rollout(built), completion_ids=ids["input_ids"], completion_mask=ids["attention_mask"])
    batch = made(built, sampled, [[r, 0.0] for r in [1.0, 0.0, 0.0, 0.0] * 2])
    # each: the steps (tokens 0 to 4, or all), then the answer at the last token
    steps = [[(4, 1.0), (5, 1.0)], [(4, 0.0), (5, 0.0)], [(0, 0.0), (0, 0.0)], [(1, 0.0), (1, 0.0)]] * 2
    torch.testing.assert_close(batch.advantages, process_supervision.advantages(steps, GROUP, TIME))
    mask, advantage = batch.completion_mask, batch.advantages
    loss = built._compute_loss(built.model, batch)
    ratio = (logps(built, batch) - batch.old).exp()
    terms = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    torch.testing.assert_close(loss, -((terms * mask).sum(1) / mask.sum(1)).mean())
    assert built._metrics["train"]["advantage/abs"] == [
        pytest.approx((advantage.abs() * mask).sum().item() / mask.sum().item())
    ]


def test_attention_dropout_is_off_where_dropout_is(tmp_path):
    built = trainer(tmp_path, attention_dropout=0.5, disable_dropout=True)
    assert {layer.self_attn.attention_dropout for layer in built.model.model.layers} == {0.0}
    assert built.model.config.attention_dropout == 0.5  # as it is saved
    batch = rollout(built, spread=0.0)
    assert torch.equal(logps(built, batch), logps(built, batch))


@pytest.mark.parametrize("masked", [True, False])
def test_padding_at_the_cap_is_no_end(tmp_path, masked):
    """A policy may sample the padding token: the completion has then come to the cap all the same."""
    built = trainer(tmp_path, mask_truncated_completions=masked)
    batch = rollout(built)
    ids = torch.full_like(batch.completion_ids, 5)
    ids[0, -1], ids[1, -1] = TOKENIZER.eos_token_id, TOKENIZER.pad_token_id
    batch = replace(batch, completion_ids=ids, completion_mask=torch.ones_like(ids))
    found, records = built.parts.rollouts.round(scored(built, batch, [[0.0, 0.0]] * BATCH))
    kept = found.completion_mask.any(dim=1).tolist()
    assert kept == ([True] + [False] * (BATCH - 1) if masked else [True] * BATCH)
    assert built._metrics["train"]["completions/clipped_ratio"][-1] == pytest.approx((BATCH - 1) / BATCH)
    assert [row["eos"] for row in records] == [True] + [False] * (BATCH - 1)
