r"""Importance ratios: how much likelier a token or a completion is under the policy than when it was sampled.

With \pi the policy and \pi_old the one that sampled the rollout, token t of completion i has the ratio
w_{i,t} = \pi(o_{i,t}) / \pi_old(o_{i,t}), the completion the ratio s_i = exp(1/|o_i| \sum_t log w_{i,t}).
"""

import torch

from encore.objectives.averages import completion_means

LEAST = 1e-4  # nats; the ratio of logs divides by log-probabilities, which are 0 for a token that is certain


def token_ratios(
    log_probs: torch.Tensor, old_log_probs: torch.Tensor, log_ratio: bool = False
) -> torch.Tensor:
    """pi / pi_old of each token, elementwise: exp(log pi - log pi_old).

    `log_ratio` takes what the lecture's code computes instead: log pi / log pi_old. Both logs are negative,
    so its gradient with respect to log pi, 1 / log pi_old, is negative as well: a good response gets *less*
    likely. Old log-probabilities above -1e-4 count as -1e-4, because the lecture's division by 0 is NaN.
    """
    if log_ratio:
        return log_probs / old_log_probs.clamp(max=-LEAST)
    return (log_probs - old_log_probs).exp()


def sequence_log_ratio(log_ratio: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """log s of each completion (GSPO, arXiv 2507.18071, Eq. 7): (batch, time) -> (batch, 1)."""
    return completion_means(log_ratio, mask)[:, None]
