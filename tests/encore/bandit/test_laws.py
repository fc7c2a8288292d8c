"""Laws of the estimators that hold for every bandit and every policy, up to rounding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.bandit import measures, problem
from encore.bandit.estimators import estimate
from encore.bandit.strings import every
from encore.recipe.kinds.bandit import BanditArgs

SEEDS = st.integers(0, 10**6)
SHAPES = st.sampled_from([(1, 1), (1, 4), (2, 1), (2, 3), (3, 2)])  # letters, tokens
ROUNDING = 1e-9


def args(**said) -> BanditArgs:
    return BanditArgs(learning_rate=1.0, steps=1, **said)


def drawn(seed: int, of: BanditArgs) -> problem.Bandit:
    return problem.draw(of.letters, of.longest, of.rewards == "graded", of.beta, of.critic_error, seed)


def mean(bandit: problem.Bandit, of: BanditArgs) -> torch.Tensor:
    return estimate(bandit, bandit.start, bandit.start, of).mean


def assert_same(made: torch.Tensor, expected: torch.Tensor) -> None:
    assert (made - expected).norm() <= ROUNDING * expected.norm() + 1e-14


@given(SHAPES, SEEDS)
def test_all_strings_are_listed_once_and_any_distribution_is_a_policy(shape, seed):
    strings = every(*shape)
    assert len(set(strings.texts)) == len(strings.texts) == args(letters=shape[0], longest=shape[1]).strings
    logits = torch.randn(strings.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    chances = strings.probabilities(logits)
    assert chances.sum().item() == pytest.approx(1, abs=1e-12)
    again = strings.policy(chances.log())
    torch.testing.assert_close(strings.log_probs(again), strings.log_probs(logits))


@given(SHAPES, SEEDS)
def test_the_mean_of_the_scores_is_zero(shape, seed):
    bandit = drawn(seed, args(letters=shape[0], longest=shape[1]))
    chances, scores = bandit.strings.probabilities(bandit.start), bandit.strings.scores(bandit.start)
    assert (chances @ scores.sum(dim=1)).norm() < 1e-12


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([2, 3]))
def test_baselines_of_a_group(seed, size):
    raw, others, centered = (
        args(group=size, advantage=name) for name in ("raw", "leave_one_out", "centered")
    )
    bandit = drawn(seed, raw)
    exact = problem.gradient(bandit.objective, bandit.start)
    assert_same(mean(bandit, raw), exact)
    assert_same(mean(bandit, others), exact)
    assert_same(mean(bandit, centered), (size - 1) / size * exact)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from(["raw", "mean"]))
def test_no_scalar_baseline_has_less_variance_than_the_optimal_one(seed, name):
    bandit = drawn(seed, args())
    rival, best = (
        estimate(bandit, bandit.start, bandit.start, args(advantage=each)).variance
        for each in (name, "optimal")
    )
    assert best <= rival * (1 + ROUNDING)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.floats(0, 2))
def test_lambda_1_is_unbiased_for_any_critic_and_any_lambda_for_a_true_one(seed, error):
    of = args(advantage="gae", lam=1.0, critic_error=error)
    bandit = drawn(seed, of)
    assert_same(mean(bandit, of), problem.gradient(bandit.objective, bandit.start))
    of = args(advantage="gae", lam=0.3)
    bandit = drawn(seed, of)
    assert_same(mean(bandit, of), problem.gradient(bandit.objective, bandit.start))


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([0.05, 0.3, 2.0]))
def test_penalties(seed, beta):
    exact, partial = {"reward": "kl/gap"}, {"k2": "kl/held", "k3_weighted": "kl/held", "k3": "kl/forward"}
    for kl, gap in (exact | partial).items():
        of = args(beta=beta, kl=kl, advantage="gae" if kl == "reward" else "mean")
        bandit = drawn(seed, of)
        assert measures.of_penalty(bandit, bandit.start, of)[gap] < ROUNDING
    for kl in ("k1", "guide"):
        of = args(beta=beta, kl=kl)
        bandit = drawn(seed, of)
        assert measures.of_penalty(bandit, bandit.start, of)["kl/size"] < ROUNDING
    assert measures.of_penalty(bandit, bandit.start, of)["kl/error"] == pytest.approx(
        -2 * bandit.divergence(bandit.start).item()
    )


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([0.1, 0.3, 2.0]))
def test_dpo_and_rlhf_have_one_optimum(seed, beta):
    for of in (args(objective="dpo", beta=beta), args(advantage="gae", kl="reward", beta=beta)):
        assert measures.of_optimum(drawn(seed, of), of) < 1e-12


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_right_or_wrong_is_fine_tuning_times_the_share_of_right_answers(seed):
    rewarded = args(rewards="right", advantage="raw")
    bandit = drawn(seed, rewarded)
    tuned = mean(bandit, args(rewards="right", objective="fine_tuning"))
    assert_same(mean(bandit, rewarded), bandit.reward(bandit.start) * tuned)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_clip_cuts_good_tokens_above_and_bad_tokens_below(seed):
    for of, cut in ((args(inner_steps=2), 1.0), (args(inner_steps=2, old="current"), 0.0)):
        bandit = drawn(seed, of)
        made = estimate(bandit, bandit.start, bandit.reference, of)
        found = measures.of_clip(bandit, bandit.start, bandit.reference, made, of)
        expected = {"good_above": cut, "good_below": 0.0, "bad_above": 0.0, "bad_below": cut}
        assert found.items() <= {f"cut/{cell}": share for cell, share in expected.items()}.items() | {
            ("clip_fraction", found["clip_fraction"])
        }
        assert cut or not found["clip_fraction"]


def test_angles():
    x, y = torch.tensor([1.0, 0.0]).double(), torch.tensor([0.0, 2.0]).double()
    assert measures.angle(x, y) == pytest.approx(90)
    assert measures.angle(x, -x) == pytest.approx(180)
    assert measures.angle(x, x + 1e-12 * y) == pytest.approx(1e-10, rel=0.2)
    assert str(measures.angle(x, 0 * y)) == "nan"
