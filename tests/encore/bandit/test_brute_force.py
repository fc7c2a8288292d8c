"""Means and variances of the estimators are those of loops over all that can be drawn, written apart."""

import math

import brute_force as brute
import numpy as np
import pytest

from encore.bandit import problem
from encore.bandit.estimators import estimate
from encore.recipe.kinds.bandit import BanditArgs

SEED, BETA, GUARD = 5, 0.4, 1e-4
EXACT = {"rtol": 1e-9, "atol": 1e-12}


def args(**said) -> BanditArgs:
    return BanditArgs(learning_rate=1.0, steps=1, letters=2, longest=2, **said)


def both(of: BanditArgs) -> tuple[problem.Bandit, brute.Problem, list[str]]:
    """A bandit, the same for the loops, and the prefixes in the order of their rows."""
    drawn = problem.draw(2, 2, of.rewards == "graded", of.beta, of.critic_error, SEED)
    prefixes = ["", "a", "b"]
    texts = dict(zip(drawn.strings.texts, drawn.rewards.tolist(), strict=True))
    reference = brute.tables(prefixes, drawn.reference.numpy())
    return drawn, brute.Problem("ab", 2, texts, reference, of.beta), prefixes


def compare(of: BanditArgs, draw) -> None:
    """Compare an on-policy estimator with the loops over what `draw(plain, policy)` makes of a group."""
    drawn, plain, prefixes = both(of)
    policy = brute.tables(prefixes, drawn.start.numpy())
    mean, variance = brute.moments(plain, policy, of.group, draw(plain, policy))
    made = estimate(drawn, drawn.start, drawn.start, of)
    np.testing.assert_allclose(made.mean.numpy(), mean, **EXACT)
    np.testing.assert_allclose(made.variance.item(), variance, **EXACT)


def baseline(name: str, plain: brute.Problem, policy: brute.Tables) -> float:
    lengths = dict.fromkeys(plain.strings(), 1.0)
    if name == "optimal":
        lengths = {
            text: np.square(brute.score(plain, policy, text, [1.0] * len(text))).sum() for text in lengths
        }
    weights = {text: brute.chance(plain, policy, text) * length for text, length in lengths.items()}
    return sum(weights[text] * plain.rewards[text] for text in weights) / sum(weights.values())


@pytest.mark.parametrize("name", ["raw", "mean", "optimal", "leave_one_out", "centered", "normalized"])
@pytest.mark.parametrize("size", [2, 3])
def test_baselines(name, size):
    def draw(plain, policy):
        scalar = baseline(name, plain, policy) if name in ("mean", "optimal") else 0.0

        def of_group(group):
            rewards = [plain.rewards[text] for text in group]
            mean, std = np.mean(rewards), np.std(rewards, ddof=1)
            advantages = {
                "leave_one_out": [r - np.mean(rewards[:i] + rewards[i + 1 :]) for i, r in enumerate(rewards)],
                "centered": [r - mean for r in rewards],
                "normalized": [(r - mean) / (std + GUARD) for r in rewards],
            }.get(name, [r - scalar for r in rewards])
            made = [
                brute.score(plain, policy, text, [a] * len(text))
                for text, a in zip(group, advantages, strict=True)
            ]
            return np.mean(made, axis=0)

        return of_group

    compare(args(advantage=name, group=size), draw)


# the derivative of each penalty by log pi, with d = log pi - log pi_ref
PENALTIES = {
    "k1": lambda d: 1.0,
    "k2": lambda d: d,
    "k3": lambda d: 1 - math.exp(-d),
    "k3_weighted": lambda d: (1 - math.exp(-d)) + (math.exp(-d) - 1 + d),
    "guide": lambda d: -1.0,
}


def gaps(plain: brute.Problem, policy: brute.Tables, text: str) -> list[float]:
    own, ref = (brute.log_probs(plain, each, text) for each in (policy, plain.reference))
    return [a - b for a, b in zip(own, ref, strict=True)]


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_in_the_loss(name):
    def draw(plain, policy):
        scalar = baseline("mean", plain, policy)

        def of_group(group):
            (text,) = group
            weights = [
                plain.rewards[text] - scalar - BETA * PENALTIES[name](d) for d in gaps(plain, policy, text)
            ]
            return brute.score(plain, policy, text, weights)

        return of_group

    compare(args(kl=name, beta=BETA), draw)


@pytest.mark.parametrize("lam", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("kl", ["none", "reward"])
def test_gae(lam, kl):
    of = args(advantage="gae", lam=lam, critic_error=0.3, kl=kl, beta=0.0 if kl == "none" else BETA)
    drawn, _, prefixes = both(of)
    errors = dict(zip(prefixes, drawn.errors.tolist(), strict=True))

    def draw(plain, policy):
        def rewards(text):
            return [-plain.beta * d for d in gaps(plain, policy, text)[:-1]] + [
                plain.rewards[text] - plain.beta * gaps(plain, policy, text)[-1]
            ]

        def value(prefix):
            through = [text for text in plain.strings() if text.startswith(prefix)]
            chances = [brute.chance(plain, policy, text) for text in through]
            to_come = [sum(rewards(text)[len(prefix) :]) for text in through]
            return np.dot(chances, to_come) / sum(chances) + errors[prefix]

        def of_group(group):
            (text,) = group
            values = [value(text[:t]) for t in range(len(text))] + [0.0]
            deltas = [r + values[t + 1] - values[t] for t, r in enumerate(rewards(text))]
            weights = [
                sum(lam ** (later - t) * deltas[later] for later in range(t, len(deltas)))
                for t in range(len(deltas))
            ]
            return brute.score(plain, policy, text, weights)

        return of_group

    compare(of, draw)


@pytest.mark.parametrize("old", ["sampler", "current"])
def test_the_ratio_and_its_clip_off_policy(old):
    of = args(old=old, epsilon=0.1)
    drawn, plain, prefixes = both(of)
    sampler = brute.tables(prefixes, drawn.reference.numpy())
    policy = brute.tables(prefixes, drawn.start.numpy())
    scalar = baseline("mean", plain, sampler)

    def of_group(group):
        (text,) = group
        advantage, weights = plain.rewards[text] - scalar, []
        for d in gaps(plain, policy, text):  # the sampler is the reference
            ratio = math.exp(d) if old == "sampler" else 1.0
            cut = ratio > 1.1 if advantage > 0 else ratio < 0.9
            weights.append(0.0 if cut else ratio * advantage)
        return brute.score(plain, policy, text, weights)

    mean: np.ndarray = np.zeros(9)
    for text in plain.strings():
        mean = mean + brute.chance(plain, sampler, text) * of_group((text,))
    made = estimate(drawn, drawn.start, drawn.reference, of)
    np.testing.assert_allclose(made.mean.numpy(), mean, **EXACT)


def test_dpo_descends_its_population_loss():
    of = args(objective="dpo", beta=BETA)
    drawn, plain, prefixes = both(of)

    def loss(policy):
        total = 0.0
        for better in plain.strings():
            for worse in plain.strings():
                label = 1 / (1 + math.exp(plain.rewards[worse] - plain.rewards[better]))
                margin = BETA * (sum(gaps(plain, policy, better)) - sum(gaps(plain, policy, worse)))
                both_drawn = brute.chance(plain, plain.reference, better) * brute.chance(
                    plain, plain.reference, worse
                )
                total += 2 * both_drawn * label * math.log(1 + math.exp(-margin))
        return total

    made = estimate(drawn, drawn.start, drawn.start, of)
    uphill = -brute.slope(loss, brute.tables(prefixes, drawn.start.numpy()))
    np.testing.assert_allclose(made.mean.numpy(), uphill, rtol=1e-6, atol=1e-9)


def test_fine_tuning_follows_the_likelihood_of_what_is_right():
    of = args(objective="fine_tuning", rewards="right")
    drawn, plain, prefixes = both(of)
    policy = brute.tables(prefixes, drawn.start.numpy())
    share = sum(brute.chance(plain, policy, text) * plain.rewards[text] for text in plain.strings())

    def likelihood(moved):
        return sum(
            brute.chance(plain, policy, text)
            * plain.rewards[text]
            / share
            * sum(brute.log_probs(plain, moved, text))
            for text in plain.strings()
        )

    made = estimate(drawn, drawn.start, drawn.start, of)
    np.testing.assert_allclose(made.mean.numpy(), brute.slope(likelihood, policy), rtol=1e-6, atol=1e-9)


def test_the_exact_gradient_is_that_of_finite_differences():
    drawn, plain, prefixes = both(args(kl="k1", beta=BETA))
    made = problem.gradient(drawn.objective, drawn.start)
    expected = brute.slope(
        lambda policy: brute.objective(plain, policy), brute.tables(prefixes, drawn.start.numpy())
    )
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-6, atol=1e-9)


def test_the_optimum_has_the_log_partition_as_its_objective():
    drawn, plain, prefixes = both(args(kl="k1", beta=BETA))
    partition = sum(
        brute.chance(plain, plain.reference, text) * math.exp(plain.rewards[text] / BETA)
        for text in plain.strings()
    )
    best = brute.tables(prefixes, drawn.optimum().numpy())
    assert brute.objective(plain, best) == pytest.approx(BETA * math.log(partition), rel=1e-12)
