r"""A bandit that is drawn by a seed. Every expectation over it is exact: a sum over all strings.

The objective of RLHF, with the coefficient \beta of its KL penalty (0 without a penalty), is

    J(\pi) = E_\pi[r(s)] - \beta KL(\pi || \pi_ref)

and its optimum is \pi*(s) = \pi_ref(s) exp(r(s) / \beta) / Z (DPO, arXiv 2305.18290, Eq. 4).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from encore.bandit.strings import Strings, every
from encore.objectives import gae
from encore.objectives.kl import exact_kl

SPREAD = 1.0  # standard deviation of the reference's logits
AWAY = 0.5  # standard deviation of the difference between the logits of the first policy and of the reference
RIGHT = 0.2  # share of the strings that are right


@dataclass(frozen=True)
class Bandit:
    """Strings with their rewards, a reference policy, a first policy, and the errors of a critic."""

    strings: Strings
    rewards: Tensor  # (S,) between 0 and 1
    reference: Tensor  # (P, V) logits
    start: Tensor  # (P, V) logits of the policy before training
    errors: Tensor  # (P,) the critic's error at each prefix
    beta: float

    def divergence(self, logits: Tensor) -> Tensor:
        """Return KL(pi || pi_ref) of whole strings, in nats: ()."""
        log_ratio = self.strings.log_probs(logits) - self.strings.log_probs(self.reference)
        return self.strings.probabilities(logits) @ log_ratio.sum(dim=1)

    def reward(self, logits: Tensor) -> Tensor:
        """Return the expected reward E_pi[r], a scalar."""
        return self.strings.probabilities(logits) @ self.rewards

    def objective(self, logits: Tensor) -> Tensor:
        """Return the objective J(pi): ()."""
        return self.reward(logits) - self.beta * self.divergence(logits)

    def length(self, logits: Tensor) -> Tensor:
        """Return the expected number of tokens, a scalar."""
        return self.strings.probabilities(logits) @ self.strings.mask.sum(dim=1)

    def entropy(self, logits: Tensor) -> Tensor:
        """Return the entropy of whole strings in nats, a scalar."""
        return -self.strings.probabilities(logits) @ self.strings.log_probs(logits).sum(dim=1)

    def optimum(self) -> Tensor:
        """Return the logits (P, V) of the optimal policy pi*. The bandit must have a KL penalty."""
        tilted = self.strings.log_probs(self.reference).sum(dim=1) + self.rewards / self.beta  # (S,)
        return self.strings.policy(tilted.log_softmax(dim=0))

    def token_rewards(self, old: Tensor, penalised: bool) -> Tensor:
        r"""Return the reward of each token, (S, T): r at the end, less \beta log pi/pi_ref if `penalised`."""
        log_ratio = self.strings.log_probs(old) - self.strings.log_probs(self.reference)
        return gae.token_rewards(self.rewards, log_ratio, self.strings.mask, self.beta if penalised else 0.0)

    def values(self, old: Tensor, rewards: Tensor) -> Tensor:
        """Return the critic's value before each token, (S, T): the expected return plus the critic's error.

        `rewards` (S, T) are the rewards of tokens. `old` (P, V) is the policy that continues from each
        prefix.
        """
        strings, weights = self.strings, self.strings.probabilities(old)[:, None]
        to_come = rewards.flip(1).cumsum(1).flip(1)  # (S, T)
        true = strings.by_prefix(weights * to_come) / strings.by_prefix(weights.expand_as(to_come))
        return (true + self.errors)[strings.prefixes] * strings.mask


def draw(letters: int, longest: int, graded: bool, beta: float, error: float, seed: int) -> Bandit:
    """Draw a bandit by a seed.

    If `graded`, the rewards are uniform on [0, 1]; otherwise a fifth of the strings has the reward 1, and the
    others 0. `error` is the standard deviation of the critic's errors.
    """
    strings, generator = every(letters, longest), torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    size = len(strings.texts)
    uniform = torch.rand(size, generator=generator, dtype=torch.float64)
    right = (uniform.argsort().argsort() < max(round(RIGHT * size), 1)).double()
    reference = SPREAD * normal(*strings.shape)
    start = reference + AWAY * normal(*strings.shape)
    errors = error * normal(strings.shape[0])
    return Bandit(strings, uniform if graded else right, reference, start, errors, beta)


def gradient(function: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
    """Return the gradient of a function of logits (P, V) by automatic differentiation: (P V,)."""
    leaf = logits.clone().requires_grad_()
    (made,) = torch.autograd.grad(function(leaf), leaf)
    return made.flatten()


def held_prefixes(bandit: Bandit, logits: Tensor, forward: bool = False) -> Tensor:
    """Return the gradient of the expected sum of token KLs, (P V,), with fixed probabilities of prefixes.

    It thus leaves out that the policy also changes which prefixes occur. A token's KL is KL(pi || pi_ref) or,
    with `forward`, KL(pi_ref || pi).
    """
    visits = bandit.strings.by_prefix(bandit.strings.probabilities(logits)[:, None] * bandit.strings.mask)
    log_ref = bandit.reference.log_softmax(dim=1)

    def summed(leaf: Tensor) -> Tensor:
        log_pi = leaf.log_softmax(dim=1)
        return visits @ (exact_kl(log_ref, log_pi) if forward else exact_kl(log_pi, log_ref))

    return gradient(summed, logits)
