"""The importance ratio of stage `policy_gradient`, with the defect of the lecture's code."""

import torch

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
