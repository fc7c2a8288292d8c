"""The references themselves: gradients that the papers write out, and identities between objectives.

Completions of random length and log-probabilities; no model, no trainer.
"""

import numpy as np
import pytest
import references as paper
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from references import Sample

FEW = settings(max_examples=20)
SEEDS = st.integers(0, 10**6)
WIDE = {"low": 100.0, "high": 100.0}  # a clip that cuts nothing


def batch(seed: int) -> list[Sample]:
    """Four completions of 1 to 6 tokens, the third masked."""
    rng = torch.Generator().manual_seed(seed)

    def noise(count: int, scale: float) -> torch.Tensor:
        return scale * torch.randn(count, generator=rng, dtype=torch.float64)

    samples = []
    for number in range(4):
        length = int(torch.randint(1, 7, (), generator=rng))
        old = -noise(length, 1.0).abs()
        logp = (old + noise(length, 0.3)).requires_grad_()
        advantage = noise(1, 1.0)[0]
        samples.append(Sample(logp, old, old + noise(length, 0.3), advantage, number == 2, number // 2))
    return samples


def gradients(objective: torch.Tensor, samples: list[Sample]) -> list[torch.Tensor]:
    """d J / d log pi(o_t) of each completion."""
    found = torch.autograd.grad(objective, [s.logp for s in samples], allow_unused=True)
    return [torch.zeros_like(s.logp) if g is None else g for g, s in zip(found, samples, strict=True)]


def check(objective: torch.Tensor, samples: list[Sample], coefficient) -> None:
    for found, s in zip(gradients(objective, samples), samples, strict=True):
        expected = torch.zeros_like(found) if s.masked else coefficient(s).expand_as(found)
        torch.testing.assert_close(found, expected.detach())


@FEW
@given(SEEDS)
def test_gradient_coefficients(seed: int):
    """DeepSeekMath Eq. 20, GSPO Eq. 10 and 17; of CISPO and the plain gradients, what they are made to be."""
    samples = batch(seed)
    tokens, rows = sum(len(s) for s in samples), len(samples)
    ratio, whole = paper.token_ratio, paper.sequence_ratio

    def per_row(s: Sample) -> float:
        return 1 / rows / len(s)

    def beta_term(s: Sample) -> torch.Tensor:
        assert s.reference is not None
        return 0.3 * ((s.reference - s.logp).exp() - 1)

    check(
        paper.grpo(samples, **WIDE, beta=0.3),
        samples,
        lambda s: (ratio(s) * s.advantage + beta_term(s)) * per_row(s),
    )
    check(paper.dapo(samples, **WIDE), samples, lambda s: ratio(s) * s.advantage / tokens)
    check(paper.dr_grpo(samples, **WIDE), samples, lambda s: ratio(s) * s.advantage / rows)
    check(paper.gspo(samples, **WIDE), samples, lambda s: whole(s) * s.advantage * per_row(s))
    check(paper.gspo_token(samples, **WIDE), samples, lambda s: whole(s) * s.advantage * per_row(s))
    check(paper.cispo(samples, 0.1, 0.2), samples, lambda s: ratio(s).clamp(0.9, 1.2) * s.advantage / tokens)
    check(paper.reinforce(samples), samples, lambda s: s.advantage / rows)
    check(paper.likelihood(samples), samples, lambda s: s.advantage * per_row(s))


@FEW
@given(SEEDS)
def test_a_clip_cuts_on_the_side_that_the_advantage_pushes_to(seed: int):
    samples = batch(seed)
    for found, s in zip(gradients(paper.dr_grpo(samples, 0.2, 0.28), samples), samples, strict=True):
        ratio = paper.token_ratio(s)
        cut = torch.where(s.advantage > 0, ratio > 1.28, ratio < 0.8) | s.masked
        assert torch.equal(found == 0, cut)


@FEW
@given(SEEDS)
def test_sequence_and_token_are_one_where_the_advantage_is(seed: int):
    """GSPO and GSPO-token in value, clip and gradient: Eq. 17."""
    samples = batch(seed)
    one, other = paper.gspo(samples, 0.05, 0.1), paper.gspo_token(samples, 0.05, 0.1)
    torch.testing.assert_close(one, other)
    for a, b in zip(gradients(one, samples), gradients(other, samples), strict=True):
        torch.testing.assert_close(a, b)


REWARDS = st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=3)


@FEW
@given(REWARDS)
def test_advantages(rewards: list[list[int]]):
    r = np.array(rewards, dtype=float)
    assert paper.leave_one_out(r) == pytest.approx(paper.centered(r) * 4 / 3)
    assert paper.centered(r).sum(axis=1) == pytest.approx(0)
    varied = r.std(axis=1) > 0
    assert paper.normalized(r).std(axis=1) == pytest.approx(varied.astype(float))
    assert (paper.normalized(r, ddof=1, guard=1e-4)[~varied] == 0).all()
    assert paper.best(r).max(axis=1) == pytest.approx(r.max(axis=1))
    assert paper.moving_average(r, []) == pytest.approx(r - r.mean())
    assert paper.moving_average(r, [r + 1, r + 3]) == pytest.approx(r - r.mean() - 2)


def test_process():
    """Worked by hand: the rewards 1, 0, 1, 1 have mean 3/4 and variance 3/16."""
    right, wrong = 0.25 / np.sqrt(3 / 16), -0.75 / np.sqrt(3 / 16)
    steps = [[(1, 1.0), (3, 0.0)], [(0, 1.0), (1, 1.0)]]
    first, second = paper.process(steps, [5, 2])
    assert first == pytest.approx([right + wrong, right + wrong, wrong, wrong, 0])
    assert second == pytest.approx([2 * right, right])


def test_soft_overlong():
    """DAPO §4.1: a cap of 20480 tokens, of which the last 4096 are punished."""
    lengths = [1, 16384, 18432, 20480]
    assert [paper.soft_overlong(length, 20480, 4096) for length in lengths] == [0, 0, -0.5, -1]
