"""A copy of a policy in a lower precision: what is rounded, by how much, and what it does to a sampler."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from decoder_models import PROMPTS, log_probs, model
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.errors import UserError
from encore.learning.samplers import LeanSampler, Sampler
from encore.sampling.decoding import sample
from encore.sampling.rounded import HALVES, of_float8, of_int8, rounded

PRECISIONS = ("bfloat16", "float16", "int8", "float8")
# all numbers of e4m3: sign, four bits of exponent with bias 7, three bits of mantissa; 15 and 7 is no number
E4M3 = sorted(
    sign * ((1 + m / 8) * 2.0 ** (e - 7) if e else m / 8 * 2.0**-6)
    for sign in (1, -1)
    for e in range(16)
    for m in range(8)
    if (e, m) != (15, 7)
)


def matrix(seed: int, scale: float) -> torch.Tensor:
    return scale * torch.randn(5, 7, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1e-6, 0.02, 3.0, 1e4]))
def test_int8_is_off_by_half_a_step_at_most(seed: int, scale: float):
    weight = matrix(seed, scale)
    near = of_int8(weight)
    step = weight.abs().amax(dim=-1, keepdim=True) / 127
    assert ((near - weight).abs() <= 0.5001 * step).all()
    assert torch.allclose(near / step, (near / step).round(), atol=1e-3)
    assert all(len(row.unique()) <= 255 for row in near)
    assert torch.equal(of_int8(torch.zeros(2, 3)), torch.zeros(2, 3))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1e-6, 0.02, 3.0, 1e4]))
def test_float8_is_the_nearest_number_of_e4m3(seed: int, scale: float):
    weight = matrix(seed, scale)
    unit = weight.abs().amax() / max(E4M3)
    table = torch.tensor(E4M3, dtype=torch.float64)
    distance = ((weight.double() / unit)[..., None] - table).abs().amin(dim=-1)
    near = of_float8(weight).double() / unit
    assert torch.allclose((near - weight.double() / unit).abs(), distance, atol=1e-4, rtol=1e-3)
    assert torch.equal(of_float8(torch.zeros(2, 3)), torch.zeros(2, 3))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_copy_is_rounded_and_the_policy_is_not(precision: str):
    built = model().float()
    before = {name: weight.clone() for name, weight in built.state_dict().items()}
    made = rounded(built, precision).state_dict()
    assert all(torch.equal(weight, before[name]) for name, weight in built.state_dict().items())
    changed = {name for name, weight in made.items() if not torch.equal(weight.float(), before[name])}
    linear = {name for name in before if "_proj.weight" in name}
    assert changed == ({*before} if precision in HALVES else linear)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_frequencies_of_rotary_positions_are_not_rounded(precision: str):
    built = model().float()
    frequencies = built.model.rotary_emb.inv_freq
    assert not torch.equal(frequencies.bfloat16().float(), frequencies)
    assert torch.equal(rounded(built, precision).model.rotary_emb.inv_freq, frequencies)


def test_the_weights_of_experts_are_no_linear_layers():
    sparse = model(kind="qwen3_moe", num_experts=5, num_experts_per_tok=2, moe_intermediate_size=24)
    with pytest.raises(UserError, match="sampler_precision: int8 is of linear layers, not of experts"):
        rounded(sparse.float(), "int8")
    assert rounded(sparse.float(), "bfloat16")


def gap(precision: str | None) -> float:
    """The mean difference of a sampler's log-probabilities from the policy's, by transformers in float32."""
    built = model(seed=3).float()
    policy = built if precision is None else rounded(built, precision)
    torch.manual_seed(0)
    prompts = PROMPTS * 8
    drawn, logps = sample(policy, prompts, 12, 1.0, [1])
    assert logps.isfinite().all()
    differences = [
        logps[row, : len(ids)].double() - log_probs(built, prompts[row], ids, 1.0)
        for row, ids in enumerate(drawn)
    ]
    return float(torch.cat(differences).detach().abs().mean())


def test_the_gap_follows_the_precision():
    """float16 has three bits of mantissa more than bfloat16, so that its gap is about an eighth."""
    gaps = {precision: gap(precision) for precision in PRECISIONS}
    assert gap(None) < 1e-5
    assert 3 < gaps["bfloat16"] / gaps["float16"] < 20
    assert gaps["float16"] < gaps["int8"] < gaps["float8"]


def sampler(precision: str | None) -> tuple[Sampler, Any]:
    built = model().float()
    trainer = SimpleNamespace(
        accelerator=SimpleNamespace(unwrap_model=lambda made: made),
        model=built,
        temperature=1.0,
        eos_token_ids=[1],
        state=SimpleNamespace(global_step=0),
    )
    return Sampler(trainer, LeanSampler(trainer, precision=precision)), trainer


def test_a_copy_is_made_anew_when_the_policy_has_learned():
    asked, trainer = sampler("int8")
    asked.drawing.draw([[5, 6]], 2)
    first = asked.drawing.copies[0]
    asked.drawing.draw([[5, 6]], 2)
    assert asked.drawing.copies[0] is first
    with torch.no_grad():
        trainer.model.model.layers[0].mlp.down_proj.weight *= 2
    trainer.state.global_step = 1
    asked.drawing.draw([[5, 6]], 2)
    (copied,) = asked.drawing.copies.values()
    weights = [made.model.layers[0].mlp.down_proj.weight for made in (copied, first)]
    assert torch.allclose(weights[0], 2 * weights[1])


def test_a_rounded_sampler_is_no_exact_one():
    """So its log-probabilities do not stand for those of the policy, and the loss may correct for them."""
    assert not sampler("float16")[0].drawing.exact
    assert sampler("float16")[0].rounds
    assert sampler(None)[0].drawing.exact
    assert not sampler(None)[0].rounds
