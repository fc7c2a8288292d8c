"""GAE on a decision process solved by hand; what must hold of it, and of what is around it, always."""

import itertools

import ppo_references as paper
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.objectives import gae, losses
from encore.objectives.kl import adapted_coefficient

# Two decisions. At s0, `a` and `b` have the probability 1/2, and `a` is rewarded with 1; at s1, `c` has 1/4
# and is rewarded with 4, `d` with nothing. gamma = 1/2: V(s1) = 1/4 * 4 = 1, V(s0) = 1/2 * 1 + 1/2 * 1 = 1.
PATHS = {("a", "c"): 1 / 8, ("a", "d"): 3 / 8, ("b", "c"): 1 / 8, ("b", "d"): 3 / 8}
REWARD = {"a": 1.0, "b": 0.0, "c": 4.0, "d": 0.0}
GAMMA = 0.5
VALUES = [1.0, 1.0]


def of_paths(values: list[float], lam: float) -> dict[tuple[str, str], list[float]]:
    rewards = torch.tensor([[REWARD[x], REWARD[y]] for x, y in PATHS])
    ones = torch.ones_like(rewards)
    found = gae.advantages(rewards, torch.tensor([values] * len(PATHS)), ones, GAMMA, lam)
    return dict(zip(PATHS, found.tolist(), strict=True))


def test_advantages_solved_by_hand():
    """With lambda 1/2: delta of a, b, c, d is 1/2, -1/2, 3, -1, and A(s0) = delta + 1/4 of the next."""
    expected = {
        ("a", "c"): [1.25, 3.0],
        ("a", "d"): [0.25, -1.0],
        ("b", "c"): [0.25, 3.0],
        ("b", "d"): [-0.75, -1.0],
    }
    assert of_paths(VALUES, lam=0.5) == expected


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0])
def test_with_the_true_values_its_mean_is_the_advantage(lam: float):
    """E[A | s0, a] = Q - V = 1 + 1/2 - 1; whatever lambda, for the true values have no bias."""
    found = of_paths(VALUES, lam)
    mean = {
        first: sum(2 * PATHS[path] * found[path][0] for path in PATHS if path[0] == first) for first in "ab"
    }
    assert mean == {"a": pytest.approx(0.5), "b": pytest.approx(-0.5)}


def test_with_wrong_values_only_lambda_1_is_unbiased():
    """V(s1) = 3 in place of 1: lambda 0 believes it, lambda 1 sees what comes."""
    wrong = {lam: of_paths([1.0, 3.0], lam) for lam in (0.0, 1.0)}
    mean = {lam: sum(PATHS[path] * found[path][0] for path in PATHS) for lam, found in wrong.items()}
    assert mean == {0.0: pytest.approx(1.0), 1.0: pytest.approx(0.0)}


floats = st.floats(-3, 3, width=32)


@st.composite
def rollouts(draw):
    """Rewards, values (batch, time), lengths and mask of a few completions, one of them perhaps empty."""
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    shape = (len(lengths), max(*lengths, 1))
    rewards, values = (
        torch.tensor(draw(st.lists(floats, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
        .double()
        .view(shape)
        for _ in range(2)
    )
    mask = (torch.arange(shape[1]) < torch.tensor(lengths)[:, None]).long()
    return rewards, values, lengths, mask


weights = st.sampled_from([0.0, 0.5, 0.95, 1.0])


@settings(deadline=None, max_examples=40)
@given(rollouts(), weights, weights)
def test_it_is_the_sum_of_the_equation_whatever_the_padding_holds(rollout, gamma: float, lam: float):
    rewards, values, lengths, mask = rollout
    found = gae.advantages(rewards * mask, values, mask, gamma, lam)
    assert not found[mask == 0].any()
    for row, length in enumerate(lengths):
        expected = paper.gae(rewards[row, :length].numpy(), values[row, :length].numpy(), gamma, lam)
        assert found[row, :length].tolist() == pytest.approx(expected.tolist(), abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(rollouts(), weights)
def test_lambda_1_compares_with_what_came_and_lambda_0_with_the_next_value(rollout, gamma: float):
    rewards, values, lengths, mask = rollout
    for row, length in itertools.product(range(len(lengths)), range(1, 6)):
        if lengths[row] != length:
            continue
        given = rewards * mask
        togo = [sum(gamma**k * given[row, t + k].item() for k in range(length - t)) for t in range(length)]
        long = gae.advantages(given, values, mask, gamma, 1.0)[row, :length] + values[row, :length]
        assert long.tolist() == pytest.approx(togo, abs=1e-9)
        last = gae.advantages(given, values, mask, gamma, 0.0)[row, length - 1]
        assert last.item() == pytest.approx((given[row, length - 1] - values[row, length - 1]).item())


@settings(deadline=None, max_examples=40)
@given(rollouts())
def test_whitening(rollout):
    """Mean 0 and variance 1 over the real tokens, or the mean they had; affine maps change nothing."""
    values, _, lengths, mask = rollout
    real = values[mask.bool()]
    found, kept = gae.whiten(values, mask), gae.whiten(values, mask, shift_mean=False)
    assert not found[mask == 0].any()
    assert not kept[mask == 0].any()
    if sum(lengths) > 1 and real.std() > 1e-2:
        white = found[mask.bool()]
        assert white.mean().item() == pytest.approx(0, abs=1e-9)
        assert white.var(correction=0).item() == pytest.approx(1, rel=1e-3)
        assert kept[mask.bool()].mean().item() == pytest.approx(real.mean().item(), abs=1e-9)
        again = gae.whiten(3 * values + 1, mask)
        assert torch.allclose(again, found, atol=1e-3)


def test_the_score_is_at_the_last_token_and_the_kl_at_each():
    scores, ended = torch.tensor([2.0, 5.0, 7.0]), torch.tensor([True, False, False])
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [0, 0, 0]])
    log_ratio = torch.tensor([[0.5, -0.5, 9.0], [1.0, 0.0, 2.0], [9.0, 9.0, 9.0]])
    punished = gae.end_scores(scores, ended, penalty=1.0)
    assert punished.tolist() == [2.0, 4.0, 6.0]
    assert gae.end_scores(scores, ended, instead=-1.0).tolist() == [2.0, -1.0, -1.0]
    rewards = gae.token_rewards(punished, log_ratio, mask, kl_coef=0.1)
    expected = [[-0.05, 2.05, 0.0], [-0.1, 0.0, 3.8], [0.0, 0.0, 0.0]]
    assert [row.tolist() for row in rewards] == [pytest.approx(row) for row in expected]
    # undiscounted, the rewards of a completion add up to its score less beta log(pi/rho)
    total = punished - 0.1 * (log_ratio * mask).sum(dim=1)
    assert rewards.sum(dim=1)[:2].tolist() == pytest.approx(total[:2].tolist())


def test_a_clipped_value_is_never_better_than_an_unclipped_one():
    values = torch.linspace(-2, 2, 41).repeat(3, 1)
    old, returns = torch.full_like(values, 0.3), torch.tensor([[-1.0], [0.25], [1.5]]).expand(3, 41)
    plain, none = losses.value_terms(values, old, returns, clip=0)
    held, cut = losses.value_terms(values, old, returns, clip=0.2)
    assert (held >= plain).all()
    assert cut.any()
    assert not none.any()
    assert torch.equal(held[~cut], plain[~cut])
    assert ((values - old).abs()[cut] > 0.2).all()


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 100), st.floats(0.01, 10), st.floats(0.01, 1))
def test_the_adaptive_coefficient_moves_towards_its_target(kl: float, coef: float, gain: float):
    after = adapted_coefficient(coef, kl, target=6.0, gain=gain)
    assert after == pytest.approx(paper.next_kl_coef(coef, kl, 6.0, gain))
    assert (after > coef) == (kl > 6.0) or kl == pytest.approx(6.0)
    assert abs(after / coef - 1) <= 0.2 * gain + 1e-9


@pytest.mark.parametrize(("kl", "factor"), [(6.6, 1.01), (5.7, 0.995), (6.0, 1.0), (60.0, 1.02), (0.0, 0.98)])
def test_the_error_of_the_kl_is_relative_to_its_target(kl: float, factor: float):
    assert adapted_coefficient(2.0, kl, target=6.0, gain=0.1) == pytest.approx(2 * factor)


def test_explained_variance():
    returns, mask = torch.tensor([[1.0, 2.0, 3.0, 99.0]]), torch.tensor([[1, 1, 1, 0]])
    assert gae.explained_variance(returns, returns, mask) == pytest.approx(1.0)
    assert gae.explained_variance(torch.full_like(returns, 7.0), returns, mask) == pytest.approx(0.0)
    assert gae.explained_variance(-returns, returns, mask) == pytest.approx(-3.0)
    assert gae.explained_variance(returns, torch.ones_like(returns), mask) == 0.0
