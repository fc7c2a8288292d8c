"""Clip-Cov and KL-Cov choose the tokens that plain loops choose."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.objectives.covariance import clip_cov, covariances, kl_cov
from encore.recipe.covariance import ClipCov, KlCov

NUMBERS = st.floats(-4, 4, width=32)
CASES = st.integers(1, 5).flatmap(
    lambda rows: st.integers(1, 6).flatmap(
        lambda time: st.tuples(
            st.lists(st.lists(NUMBERS, min_size=time, max_size=time), min_size=rows, max_size=rows),
            st.lists(NUMBERS, min_size=rows, max_size=rows),
            st.lists(st.integers(1, time), min_size=rows, max_size=rows),
        )
    )
)


def tensors(case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probabilities (B, T), advantages (B, 1) and mask (B, T)."""
    logp, advantages, lengths = case
    mask = (torch.arange(len(logp[0])) < torch.tensor(lengths)[:, None]).long()
    return torch.tensor(logp, dtype=torch.float64), torch.tensor(advantages).double()[:, None], mask


@settings(max_examples=50)
@given(CASES)
def test_covariances_add_up_to_the_covariance_of_the_tokens(case):
    logp, advantage, mask = tensors(case)
    found = covariances(logp.requires_grad_(), advantage, mask)
    assert not found.requires_grad
    tokens = [(logp[row, t].item(), advantage[row, 0].item()) for row, t in mask.nonzero().tolist()]
    means = [sum(side) / len(tokens) for side in zip(*tokens, strict=True)]
    by_hand = [(x - means[0]) * (a - means[1]) for x, a in tokens]
    torch.testing.assert_close(found[mask > 0], torch.tensor(by_hand, dtype=torch.float64))


@settings(max_examples=50)
@given(CASES, st.floats(0.01, 1.0))
def test_clip_cov_draws_tokens_of_the_range_alone(case, share):
    logp, advantage, mask = tensors(case)
    values, cut = covariances(logp, advantage, mask), logp > 1
    chosen = clip_cov(values, mask, cut, ClipCov(share=share, low=0.0, high=2.0))
    eligible = (mask > 0) & ~cut & (values > 0.0) & (values < 2.0)
    assert not (chosen & ~eligible).any()
    assert chosen.sum() == min(int(eligible.sum()), max(int(share * int(mask.sum())), 1))


@settings(max_examples=50)
@given(CASES, st.floats(0.01, 1.0))
def test_kl_cov_chooses_the_highest(case, share):
    logp, advantage, mask = tensors(case)
    values = covariances(logp, advantage, mask)
    chosen = kl_cov(values, mask, KlCov(share=share))
    count = max(int(share * int(mask.sum())), 1)
    assert chosen.sum() == count
    assert not (chosen & (mask == 0)).any()
    assert values[chosen].min() >= sorted(values[mask > 0].tolist())[-count]


def test_clip_cov_draws_anew_each_time_and_again_from_the_same_seed():
    values, mask = torch.full((4, 50), 2.0), torch.ones(4, 50)
    cut, limit = torch.zeros(4, 50, dtype=torch.bool), ClipCov(share=0.1)
    torch.manual_seed(0)
    first, second = (clip_cov(values, mask, cut, limit) for _ in range(2))
    torch.manual_seed(0)
    assert torch.equal(clip_cov(values, mask, cut, limit), first)
    assert not torch.equal(first, second)
    assert first.sum() == pytest.approx(20)
