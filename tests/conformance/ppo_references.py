"""PPO with a critic as its papers write it, in float64, a completion at a time; nothing here knows TRL.

KL in the reward, adaptive KL, whitening, value clip   Ziegler et al. 2019, arXiv 1909.08593, and its code
GAE                                                    Schulman et al. 2015, arXiv 1506.02438
PPO's clip                                             Schulman et al. 2017, arXiv 1707.06347
missing end of sequence                                Huang et al. 2024, arXiv 2403.17031
PPO-ptx                                                Ouyang et al. 2022, arXiv 2203.02155, Eq. 2
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray


@dataclass(frozen=True)
class Episode:
    """A completion of T tokens with what the policy that sampled it and the critic then said of it."""

    old: Array  # (T,) log pi_old(a_t)
    reference: Array  # (T,) log rho(a_t)
    values: Array  # (T,) V(s_t)
    score: float
    ended: bool


@dataclass(frozen=True)
class Settings:
    kl_coef: float
    gamma: float
    lam: float
    whiten_rewards: bool
    whiten_advantages: bool
    missing_eos_penalty: float | None = None
    missing_eos_score: float | None = None


def rewards(episode: Episode, how: Settings) -> Array:
    """R(x, y) - beta log(pi(y|x)/rho(y|x)), Ziegler Eq. 2, each summand at its token."""
    score = episode.score
    if not episode.ended:
        score = score if how.missing_eos_score is None else how.missing_eos_score
        score -= how.missing_eos_penalty or 0.0
    found = -how.kl_coef * (episode.old - episode.reference)
    found[-1] += score
    return found


def gae(rewards: Array, values: Array, gamma: float, lam: float) -> Array:
    """A_t = sum_l (gamma lambda)^l delta_{t+l}, Schulman Eq. 16, the sums written out."""
    following = np.append(values[1:], 0.0)  # nothing comes after the last token
    errors = rewards + gamma * following - values
    count = len(errors)
    return np.array(
        [sum((gamma * lam) ** (j - t) * errors[j] for j in range(t, count)) for t in range(count)]
    )


def whiten(rows: Sequence[Array], shift_mean: bool) -> list[Array]:
    """Variance 1 over the tokens of all rows together."""
    every = np.concatenate(rows)
    mean, variance = every.mean(), every.var()
    return [(row - mean) / np.sqrt(variance + 1e-8) + (0.0 if shift_mean else mean) for row in rows]


def learning_signal(episodes: Sequence[Episode], how: Settings) -> tuple[list[Array], list[Array]]:
    """Advantages and returns of a rollout, a row an episode."""
    given = [rewards(one, how) for one in episodes]
    if how.whiten_rewards:
        given = whiten(given, shift_mean=False)
    found = [gae(r, one.values, how.gamma, how.lam) for r, one in zip(given, episodes, strict=True)]
    returns = [a + one.values for a, one in zip(found, episodes, strict=True)]
    return whiten(found, shift_mean=True) if how.whiten_advantages else found, returns


def sequence_kl(episodes: Sequence[Episode]) -> float:
    """The mean over completions of log(pi_old(y)/rho(y)), nats."""
    return float(np.mean([(one.old - one.reference).sum() for one in episodes]))


def next_kl_coef(kl_coef: float, kl: float, target: float, gain: float) -> float:
    """e = clip((KL - target)/target, -0.2, 0.2); beta <- beta (1 + K e): Ziegler §2.2."""
    return kl_coef * (1 + gain * float(np.clip((kl - target) / target, -0.2, 0.2)))


def policy_loss(
    logps: Sequence[Tensor], old: Sequence[Array], advantages: Sequence[Array], clip: float
) -> Tensor:
    """-1/T sum_t min(w_t A_t, clip(w_t, 1 - eps, 1 + eps) A_t) over the T tokens of all rows."""
    terms = []
    for logp, before, advantage in zip(logps, old, advantages, strict=True):
        ratio, a = (logp - torch.as_tensor(before)).exp(), torch.as_tensor(advantage)
        terms.append(torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a))
    return -torch.cat(terms).mean()


def value_loss(
    values: Sequence[Tensor], old: Sequence[Array], returns: Sequence[Array], clip: float
) -> Tensor:
    """1/(2T) sum_t max((V - R)^2, (V_old + clip(V - V_old, -eps, eps) - R)^2); eps 0: the first alone."""
    terms = []
    for value, before, target in zip(values, old, returns, strict=True):
        start, goal = torch.as_tensor(before), torch.as_tensor(target)
        plain = (value - goal) ** 2
        held = (start + (value - start).clamp(-clip, clip) - goal) ** 2
        terms.append(torch.maximum(plain, held) if clip else plain)
    return torch.cat(terms).mean() / 2
