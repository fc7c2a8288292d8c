"""The importance ratio of stage `policy_gradient` or, on request, the wrong ratio in the code of CS336."""

import torch

LEAST = 1e-4  # nats: the smallest size of an old log-probability in the ratio of logs, which divides by it


def token_ratios(
    log_probs: torch.Tensor, old_log_probs: torch.Tensor, log_ratio: bool = False
) -> torch.Tensor:
    """Return pi / pi_old of each token, elementwise: exp(log pi - log pi_old).

    With `log_ratio` it returns what CS336, lecture 17, computes: log pi / log pi_old. Both logs are
    negative, so the gradient with respect to log pi, 1 / log pi_old, is negative as well: a good response
    gets *less* likely. Old log-probabilities above -1e-4 count as -1e-4, because dividing by 0 gives NaN.
    """
    if log_ratio:
        return log_probs / old_log_probs.clamp(max=-LEAST)
    return (log_probs - old_log_probs).exp()
