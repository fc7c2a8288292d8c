r"""Generalized advantage estimation: from scores and values to the advantage and the return of each token.

Tensors are (batch, time) over the tokens of the completions, padded on the right; `mask` is 1 at real tokens.
With \pi_old the policy that sampled, \rho the reference and V(s_t) the critic's value before token t:

| what         | equation                                                                  | source          |
|--------------|---------------------------------------------------------------------------|-----------------|
| reward       | r_t = -\beta log(\pi_old(a_t)/\rho(a_t)) + [t = T] score                  | Ziegler Eq. 2   |
| TD error     | \delta_t = r_t + \gamma V(s_{t+1}) - V(s_t), with V(s_{T+1}) = 0          | Schulman Eq. 10 |
| advantage    | A_t = \sum_l (\gamma \lambda)^l \delta_{t+l}                              | Schulman Eq. 16 |
| return       | R_t = A_t + V(s_t)                                                        | PPO §5          |
| whitening    | (x - mean) / sqrt(var + 1e-8), over all real tokens of the rollout        | Ziegler's code  |

Ziegler: arXiv 1909.08593. Schulman: arXiv 1506.02438. PPO: arXiv 1707.06347. A completion that is cut off at
the cap ends like any other: its last token has the score, and no value follows it.
"""

from collections.abc import Callable

import torch

VARIANCE_FLOOR = 1e-8

Sum = Callable[[torch.Tensor], torch.Tensor]  # returns the sum of a scalar over all processes


def end_scores(
    scores: torch.Tensor, ended: torch.Tensor, penalty: float | None = None, instead: float | None = None
) -> torch.Tensor:
    """Return `scores` (batch,), lowered by `penalty` or replaced by `instead` if the completion did not end.

    `ended`: (batch,) of bool. `instead` is the EOS trick of arXiv 2403.17031 (N+).
    """
    if instead is not None:
        scores = torch.where(ended, scores, torch.full_like(scores, instead))
    return scores if penalty is None else scores - penalty * (~ended).to(scores.dtype)


def token_rewards(
    scores: torch.Tensor, log_ratio: torch.Tensor, mask: torch.Tensor, kl_coef: float
) -> torch.Tensor:
    r"""Return -\beta log(\pi_old/\rho) of each token, (batch, time), plus the score at the last token.

    `scores`: (batch,). A completion without a token has no reward.
    """
    rewards = -kl_coef * log_ratio * mask
    lengths = mask.sum(dim=1).long()
    last = (lengths - 1).clamp(min=0)[:, None]
    return rewards.scatter_add(1, last, (scores * (lengths > 0))[:, None].to(rewards.dtype))


def whiten(
    values: torch.Tensor, mask: torch.Tensor, shift_mean: bool = True, summed: Sum = lambda x: x
) -> torch.Tensor:
    """Return `values` scaled to variance 1 over the real tokens, and shifted to mean 0 if `shift_mean`.

    Padding becomes 0. The variance divides by n, not n - 1. `summed` adds up a number over the processes that
    share a rollout.
    """
    count = summed(mask.sum()).clamp(min=1)
    mean = summed((values * mask).sum()) / count
    centred = (values - mean) * mask
    scaled = centred * torch.rsqrt(summed(centred.square().sum()) / count + VARIANCE_FLOOR)
    return scaled if shift_mean else scaled + mean * mask


def advantages(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, gamma: float, lam: float
) -> torch.Tensor:
    """Return the advantage GAE(gamma, lam) of each token, (batch, time), 0 at padding."""
    result = torch.zeros_like(rewards)
    after, following = torch.zeros_like(rewards[:, 0]), torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        error = rewards[:, t] + gamma * following - values[:, t]
        after = (error + gamma * lam * after) * mask[:, t]
        following = values[:, t] * mask[:, t]
        result[:, t] = after
    return result


def explained_variance(values: torch.Tensor, returns: torch.Tensor, mask: torch.Tensor) -> float:
    """Return 1 - var(R - V) / var(R) over the real tokens: 1 for a perfect critic, 0 for a constant critic.

    The result is also 0 if the returns do not vary.
    """
    real = mask.bool()
    if real.sum() < 2:
        return 0.0
    returns, errors = returns[real].double(), (returns - values)[real].double()
    spread = returns.var(correction=0)
    return (1 - errors.var(correction=0) / spread).item() if spread > VARIANCE_FLOOR else 0.0
