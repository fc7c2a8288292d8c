r"""Importance weights that correct for a sampler whose probabilities differ from the policy's.

\pi_s is the distribution that the sampler says it drew from, and \pi_old the policy when it begins to learn
from the rollout. They differ because another engine such as vLLM samples, which rounds otherwise, or because
older weights have sampled (encore/learning/ahead.py). The loss of a token is multiplied by
w = \pi_old / \pi_s (Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL
training"). The modes are the values of TRL's
`vllm_importance_sampling_mode`.
"""

import math

import torch
from torch import Tensor


def correction(
    old: Tensor, sampled: Tensor, mask: Tensor, mode: str, low: float | None, high: float | None
) -> Tensor:
    """Return w: (batch, time) in a mode `token_…`, and (batch, 1), one for each completion, in `sequence_…`.

    `old`, `sampled`: log-probabilities, (batch, time); where `sampled` is NaN, w is 1. A w outside of `low`
    and `high` is set to the bound by `…_truncate`, and to 0 by `…_mask`.
    """
    difference = ((old - sampled) * mask).nan_to_num(nan=0.0)
    if mode.startswith("sequence"):
        difference = difference.sum(dim=-1, keepdim=True)
    weight = difference.exp()
    if mode.endswith("truncate"):
        return torch.clamp(weight, min=low, max=high)
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    return weight.masked_fill((weight < least) | (weight > most), 0.0)
