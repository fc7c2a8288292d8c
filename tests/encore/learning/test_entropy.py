"""The adaptive entropy bonus: TRL's own steps, and a resume that goes on from where it was."""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import GRPOTrainer

from encore.learning.entropy import EntropyBonus

ACCELERATOR = SimpleNamespace(
    num_processes=1, sync_gradients=True, reduce=lambda x, reduction: x, gather=lambda x: x
)


def arguments(**args: Any) -> Any:
    return SimpleNamespace(
        **{
            "use_adaptive_entropy": True,
            "entropy_coef": 0.02,
            "entropy_target": 0.5,
            "entropy_coef_delta": 0.01,
            "entropy_coef_min": 0.0,
            "entropy_coef_max": 0.05,
            "epsilon": 0.2,
            "delta": None,
            "use_bias_correction_kl": False,
            **args,
        }
    )


def of_trl(entropies: list[torch.Tensor], mask: torch.Tensor) -> list[tuple[float, float]]:
    """(weight of the bonus in the loss, coefficient after the step) of each of TRL's steps."""
    args = arguments()
    trainer = SimpleNamespace(
        _entropy_bonus_enabled=True,
        _entropy_window_stats=None,
        _last_world_entropy=float("inf"),
        _metrics=defaultdict(lambda: defaultdict(list)),
        accelerator=ACCELERATOR,
        args=args,
        aux_loss_enabled=False,
        beta=0.0,
        current_gradient_accumulation_steps=1,
        entropy_coef=args.entropy_coef,
        epsilon_low=0.2,
        epsilon_high=0.2,
        importance_sampling_level="token",
        loss_type="grpo",
        max_completion_length=4,
        model=SimpleNamespace(training=True),
        off_policy_mask_threshold=None,
        top_entropy_quantile=1.0,
        use_adaptive_entropy=True,
        use_vllm=False,
        vllm_importance_sampling_correction=False,
    )
    steps = []
    for entropy in entropies:
        entropy = entropy.clone().requires_grad_()
        zeros = torch.zeros_like(entropy, requires_grad=True)
        trainer._get_per_token_logps_and_entropies = lambda *_, e=entropy, z=zeros, **__: (z, e, None)
        ids = torch.zeros(mask.shape)
        inputs = {"prompt_ids": ids, "prompt_mask": ids, "completion_ids": ids, "completion_mask": mask}
        loss = GRPOTrainer._compute_loss(trainer, None, {**inputs, "advantages": torch.zeros(len(mask))})
        (gradient,) = torch.autograd.grad(loss, entropy)
        steps.append((-gradient.sum().item(), trainer.entropy_coef))
    return steps


def test_an_adaptive_coefficient_takes_trls_steps():
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])
    levels = (0.9, 0.4, 0.3, 0.2, 0.1, 0.45, 0.6, 0.7, 0.8, 0.9, 0.9, 0.2)
    entropies = [torch.full(mask.shape, level) for level in levels]
    bonus, steps = EntropyBonus(arguments()), []
    for number, entropy in enumerate(entropies):
        weight = bonus.weight
        bonus.add(entropy, mask, ACCELERATOR)
        steps.append((weight, bonus.coef))
        if number == 5:
            state, bonus = bonus.state(), EntropyBonus(arguments())
            bonus.restore(state)
    for ours, theirs in zip(steps, of_trl(entropies, mask), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)
    assert {0.0, 0.05} <= {round(coef, 6) for _, coef in steps}, "neither bound was reached"


def test_a_step_of_several_micro_batches_is_one_mean_over_its_tokens():
    bonus = EntropyBonus(arguments())
    bonus.add(torch.full((1, 3), 0.9), torch.ones(1, 3), SimpleNamespace(sync_gradients=False))
    assert bonus.coef == 0.02
    bonus.add(torch.full((1, 1), 0.1), torch.ones(1, 1), ACCELERATOR)
    assert bonus.entropy == pytest.approx((3 * 0.9 + 0.1) / 4)
    assert bonus.coef == pytest.approx(0.01)


def test_a_fixed_coefficient_stays():
    bonus = EntropyBonus(arguments(use_adaptive_entropy=False))
    bonus.add(torch.zeros(1, 2), torch.ones(1, 2), ACCELERATOR)
    assert bonus
    assert bonus.weight == bonus.coef == 0.02
    assert not EntropyBonus(arguments(use_adaptive_entropy=False, entropy_coef=0.0))
