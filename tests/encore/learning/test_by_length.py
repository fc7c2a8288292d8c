"""The micro-batches of an update hold completions of like length: less padding, the same update."""

from dataclasses import replace
from statistics import fmean

import pytest
import torch
from hand_made import rollout, trainer
from papers import GRAPH

from encore.learning.positions import positions_run
from encore.learning.rollouts import Options
from encore.learning.trainer import Method
from encore.models.critic import from_policy
from encore.recipe.covariance import ClipCov, KlCov
from encore.recipe.graph import Node
from encore.recipe.loss_types import WHOLE

OF_CRITIC = ("value_loss", "value_clip_fraction")
ROWS, WINDOW = 32, 8  # a rollout of two updates, each of 8 micro-batches of 2 completions


def update(folder, by_length: bool, loss_type: str, bonus: float = 0.0):
    """Return the gradient of a first update, its micro-batches, their positions, and the logged entropy."""
    method = Method(Options(by_length=by_length))
    batches = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": WINDOW}
    batches |= {"steps_per_generation": 2 * WINDOW, "entropy_coef": bonus}
    built = trainer(folder, method, loss_type=loss_type, **batches)
    whole = rollout(built, ROWS)
    torch.manual_seed(5)  # of the shuffle
    rollouts = built.parts.rollouts
    rollouts.kept = rollouts.cut(whole)
    with positions_run(built.model) as positions:
        losses = [built._compute_loss(built.model, part) for part in rollouts.kept[:WINDOW]]
    sum(losses).backward()
    gradient = torch.cat([weight.grad.flatten() for weight in built.model.parameters()])
    return gradient, rollouts.kept[:WINDOW], sum(positions), fmean(built.parts.measures.log["entropy"])


@pytest.mark.parametrize("loss_type", WHOLE)
def test_the_update_is_the_same_and_runs_over_less_padding(tmp_path, loss_type):
    plain, scattered, wide, _ = update(tmp_path, False, loss_type)
    other, alike, narrow, _ = update(tmp_path, True, loss_type)
    torch.testing.assert_close(other, plain, rtol=1e-5, atol=1e-6 * plain.abs().max().item())
    first, second = (sorted(torch.cat([part.advantages for part in parts])) for parts in (scattered, alike))
    assert first == second  # the same completions
    lengths = [int(size) for part in alike for size in part.mask.sum(dim=1)]
    assert lengths == sorted(lengths, reverse=True)
    assert sum(lengths) <= narrow < 1.1 * sum(lengths) < wide


@pytest.mark.parametrize("loss_type", ["grpo", "dapo"])
def test_entropy_and_its_bonus_are_means_over_the_tokens_of_the_update(tmp_path, loss_type):
    plain, parts, _, logged = update(tmp_path, True, loss_type)
    with_bonus = update(tmp_path, True, loss_type, bonus=0.05)[0]
    built = trainer(tmp_path)
    entropy = tokens = 0.0
    for part in parts:
        of_part = built.parts.policy.logps(built.model, part, with_entropy=True).entropy
        entropy, tokens = entropy + (of_part * part.loss_mask).sum(), tokens + part.loss_mask.sum()
    assert logged == pytest.approx((entropy / tokens).item(), rel=1e-5)
    (entropy / tokens).backward()
    expected = torch.cat([weight.grad.flatten() for weight in built.model.parameters()])
    torch.testing.assert_close(with_bonus - plain, -0.05 * expected, rtol=1e-3, atol=1e-6)


def update_of_ppo(folder, by_length: bool):
    """Return the gradients of policy and critic in a first update, positions and metrics."""
    method = Method(Options(by_length=by_length), critic=from_policy(trainer(folder).model, 0))
    batches = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": WINDOW}
    built = trainer(folder, method, loss_type="dapo", steps_per_generation=2 * WINDOW, **batches)
    whole = rollout(built, ROWS)
    values, returns = (torch.randn(whole.completion_ids.shape) for _ in range(2))
    rollouts, critic = built.parts.rollouts, built.parts.kept["critic"].model
    torch.manual_seed(5)  # of the shuffle
    rollouts.kept = rollouts.cut(replace(whole, values=values, returns=returns))
    with positions_run(built.model) as positions:
        losses = [built._compute_loss(built.model, part) for part in rollouts.kept[:WINDOW]]
    sum(losses).backward()
    gradients = [
        torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])
        for model in (built.model, critic)
    ]
    logged = built.parts.measures.log
    return gradients, sum(positions), {name: fmean(logged[name]) for name in OF_CRITIC}


def test_ppo_too_makes_the_same_update_with_less_padding(tmp_path):
    torch.manual_seed(3)
    plain, wide, expected = update_of_ppo(tmp_path, False)
    torch.manual_seed(3)
    other, narrow, logged = update_of_ppo(tmp_path, True)
    for one, two in zip(plain, other, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-5, atol=1e-6 * one.abs().max().item())
    assert logged == pytest.approx(expected, rel=1e-5)
    assert 0 < logged["value_clip_fraction"] < 1
    assert narrow < 0.9 * wide


def test_a_mean_over_the_tokens_of_a_micro_batch_is_another_one(tmp_path):
    plain, other = (update(tmp_path, flag, "bnpo")[0] for flag in (False, True))
    assert (other - plain).abs().max() > 0.01 * plain.abs().max()


@pytest.mark.parametrize(
    ("keys", "args"),
    [
        ({}, {"loss_type": "bnpo"}),
        ({}, {"top_entropy_quantile": 0.2}),
        ({"bottom_entropy_quantile": 0.8}, {}),
        ({"clip_cov": ClipCov()}, {}),
        ({"kl_cov": KlCov()}, {}),
        ({"objective": "my_module:loss"}, {}),
        ({"share_prompts": True}, {}),
    ],
)
def test_completions_are_as_they_come_where_the_micro_batch_matters(keys, args):
    stage = GRAPH.stage(Node("dr_grpo", "gpu", "base-recipe", 0, "grpo", "stage"))
    assert stage.by_length
    changed = stage.model_copy(update={**keys, "args": stage.args.model_copy(update=args)})
    assert not changed.by_length
