"""The loss of objectives.grpo: TRL's own values and gradients in every combination of its settings.

The float64 references of the papers are compared with it in tests/conformance, inside a whole stage.
"""

from collections import defaultdict
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trl import GRPOTrainer

from encore.objectives import grpo
from encore.objectives.grpo import Batch, loss

ROWS, TIME, CAP = 5, 7, 9
ARGS = {
    "beta": 0.0,
    "epsilon": 0.2,
    "epsilon_high": None,
    "delta": None,
    "use_bias_correction_kl": False,
    "off_policy_mask_threshold": None,
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
}


def arguments(**args: Any) -> Any:
    return SimpleNamespace(**{**ARGS, "loss_type": "grpo", **args})


def batch(seed: int = 0, per_token: bool = False, **fields: Any) -> Batch:
    """Ragged completions, the fourth without a token in the loss; ratios well beyond every clip range."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    lengths = torch.tensor([7, 3, 1, 0, 5])[:, None]
    logp = (-draw(ROWS, TIME).abs() - 0.1).requires_grad_()
    return Batch(
        logp=logp,
        old=logp.detach() + 0.4 * draw(ROWS, TIME),
        advantage=draw(ROWS, TIME if per_token else 1),
        mask=(torch.arange(TIME) < lengths).int(),
        cap=CAP,
        step_tokens=torch.tensor(40.0),
        micro_batches=2,
        **fields,
    )


def of_trl(data: Batch, args: Any, level: str, quantile: float = 1.0) -> torch.Tensor:
    """TRL's loss of the batch. A ratio that TRL lacks is put into the old log-probabilities."""
    logp = data.logp
    inputs: dict[str, Any] = {
        "prompt_ids": torch.zeros(ROWS, 1),
        "prompt_mask": torch.ones(ROWS, 1),
        "completion_ids": torch.zeros(ROWS, TIME),
        "completion_mask": data.mask,
        "advantages": data.advantage if data.advantage.shape[1] > 1 else data.advantage[:, 0],
        "old_per_token_logps": data.old,
        "ref_per_token_logps": data.ref,
        "importance_sampling_ratio": data.correction,
        "num_items_in_batch": data.step_tokens * 4 / 2,  # of a rollout of 4 micro-batches
    }
    if level == "none":
        inputs["old_per_token_logps"] = None
    if level == "sequence_token":
        mean = ((logp - data.old) * data.mask).sum(1) / data.mask.sum(1).clamp(min=1)
        inputs["old_per_token_logps"] = logp.detach() - mean.detach()[:, None]
    if data.sampled is not None:
        inputs["sampling_per_token_logps"] = data.sampled
    accelerator = SimpleNamespace(
        num_processes=1,
        sync_gradients=True,
        reduce=lambda x, reduction: x,
        gather=lambda x: x,
        pad_across_processes=lambda x, **_: x,
    )
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (logp, data.entropy, None),
        _entropy_bonus_enabled=bool(data.entropy_coef),
        _metrics=defaultdict(lambda: defaultdict(list)),
        accelerator=accelerator,
        args=SimpleNamespace(**vars(args), steps_per_generation=4),
        aux_loss_enabled=False,
        beta=args.beta,
        current_gradient_accumulation_steps=data.micro_batches,
        entropy_coef=data.entropy_coef,
        epsilon_low=args.epsilon,
        epsilon_high=args.epsilon if args.epsilon_high is None else args.epsilon_high,
        get_off_policy_mask=GRPOTrainer.get_off_policy_mask,
        importance_sampling_level="sequence" if level == "sequence" else "token",
        loss_type=args.loss_type,
        max_completion_length=data.cap,
        model=SimpleNamespace(training=True),
        off_policy_mask_threshold=args.off_policy_mask_threshold,
        top_entropy_quantile=quantile,
        use_adaptive_entropy=False,
        use_vllm=data.correction is not None,
        vllm_importance_sampling_correction=True,
    )
    trainer.get_high_entropy_mask = lambda *given: GRPOTrainer.get_high_entropy_mask(trainer, *given)
    if data.entropy is None:  # TRL logs it always
        trainer._get_per_token_logps_and_entropies = lambda *_, **__: (logp, torch.zeros_like(logp), None)
    return GRPOTrainer._compute_loss(trainer, None, inputs)


def same(data: Batch, args: Any, level: str, quantile: float = 1.0) -> None:
    """Fail unless loss and gradient are TRL's."""
    values, gradients = [], []
    for value in (loss(data, args, level).loss, of_trl(data, args, level, quantile)):
        inputs = [data.logp] if data.entropy is None else [data.logp, data.entropy]
        gradients += [torch.autograd.grad(value, inputs, allow_unused=True)]
        values.append(value)
    torch.testing.assert_close(values[0], values[1], rtol=1e-12, atol=1e-14)
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


LEVELS = ("token", "sequence", "sequence_token", "none")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("loss_type", grpo.LOSSES)
def test_values_and_gradients_are_trls(loss_type, level):
    for seed, (per_token, beta, biased, delta, high, corrected) in enumerate(
        product((False, True), (0.0, 0.04), (False, True), (None, 1.1, 1.5), (None, 0.28), (False, True))
    ):
        plain = batch(seed, per_token)
        noise = torch.rand(ROWS, TIME, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        data = replace(
            plain,
            ref=plain.logp.detach() + noise - 0.5 if beta else None,
            correction=2 * noise if corrected else None,
        )
        args = arguments(
            loss_type=loss_type, beta=beta, use_bias_correction_kl=biased, delta=delta, epsilon_high=high
        )
        same(data, args, level)


@pytest.mark.parametrize("loss_type", grpo.LOSSES)
@pytest.mark.parametrize("sampled", [False, True])
def test_completions_that_have_become_unlikely_are_left_out_as_by_trl(loss_type, sampled):
    data = batch(1)
    told = data.old.clone()
    told[0, 2] = torch.nan  # of a token that the sampler does not know
    data = replace(data, sampled=told if sampled else None)
    for threshold in (0.0, 0.05, 0.3):
        same(data, arguments(loss_type=loss_type, off_policy_mask_threshold=threshold), "token")


@pytest.mark.parametrize("loss_type", grpo.LOSSES)
@pytest.mark.parametrize("quantile", [1.0, 0.2])
def test_entropy_bonus_and_the_tokens_of_most_entropy_are_as_by_trl(loss_type, quantile):
    plain = batch(2)
    entropy = torch.rand(ROWS, TIME, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    real = plain.mask.bool()
    floor = torch.quantile(entropy[real].float(), 1 - quantile)
    data = replace(
        plain,
        entropy=entropy.requires_grad_(),
        entropy_coef=0.1,
        learning=(entropy.detach() >= floor) & real if quantile < 1 else None,
    )
    same(data, arguments(loss_type=loss_type), "token", quantile)


@pytest.mark.parametrize(
    "loss_type", [name for name, parts in grpo.LOSSES.items() if parts[0] is grpo.clipped]
)
@pytest.mark.parametrize("delta", [None, 1.1, 1.5])
def test_a_token_is_cut_where_the_surrogate_has_no_gradient(loss_type, delta):
    for level in ("token", "sequence"):
        data, args = batch(4), arguments(delta=delta, loss_type=loss_type)
        terms = loss(data, args, level)
        w = grpo.importance_ratio(data, level).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(grpo.clipped(w, data, args).sum(), w)
        assert torch.equal(terms.cut, gradient == 0)


@pytest.mark.parametrize(("loss_type", "level"), [("cispo", "token"), ("sapo", "token"), ("grpo", "none")])
def test_without_a_clip_nothing_is_cut(loss_type, level):
    assert not loss(batch(5), arguments(loss_type=loss_type), level).cut.any()


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(list(grpo.LOSSES)), st.sampled_from(LEVELS), st.integers(0, 10**6))
def test_the_loss_of_a_step_is_the_sum_of_its_micro_batches(loss_type, level, seed):
    """But for BNPO, which divides by the tokens of each micro-batch."""
    if loss_type == "bnpo":
        return
    fields = ("logp", "old", "advantage", "mask")

    def rows(data: Batch, chosen: slice, micro_batches: int) -> Batch:
        return replace(
            data, micro_batches=micro_batches, **{name: getattr(data, name)[chosen] for name in fields}
        )

    whole = rows(replace(batch(seed), step_tokens=torch.tensor(11.0)), slice(4), 1)
    halves = [rows(whole, half, 2) for half in (slice(0, 2), slice(2, 4))]
    args = arguments(loss_type=loss_type)
    total = sum(loss(half, args, level).loss for half in halves)
    torch.testing.assert_close(total, loss(whole, args, level).loss, rtol=1e-12, atol=1e-14)


def test_what_the_mask_leaves_out_has_no_part():
    for loss_type, level in product(grpo.LOSSES, LEVELS):
        data = batch(6)
        (gradient,) = torch.autograd.grad(loss(data, arguments(loss_type=loss_type), level).loss, data.logp)
        assert not gradient[data.mask == 0].any()


def test_an_unknown_ratio_is_an_error():
    with pytest.raises(ValueError, match="no importance ratio 'tokens'"):
        grpo.importance_ratio(batch(), "tokens")
