"""PPO's clip of the importance ratio (arXiv 1707.06347, Eq. 7), and where it cuts the gradient.

`objectives.grpo` clips as TRL does; `clipped` is for the losses of stage `policy_gradient`.
"""

import math

import torch


def clipped(ratio: torch.Tensor, advantages: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Return min(w A, clip(w, 1 - low, 1 + high) A), to be maximised. The shapes broadcast."""
    return torch.minimum(advantages * ratio, advantages * ratio.clamp(1 - low, 1 + high))


def cut_by_clip(
    ratio: torch.Tensor, advantages: torch.Tensor, low: float, high: float, delta: float | None = None
) -> torch.Tensor:
    """Return, as bool, at which tokens min(w A, clip(w, 1 - low, 1 + high) A) has no gradient.

    `ratio` w and `advantages` A: (batch, time) or (batch, 1). If `delta` is given, w is at most `delta`.
    """
    first, last = (1 + high, math.inf) if delta is None else sorted((1 + high, delta))
    up, down = advantages > 0, advantages < 0
    return (up & (ratio > first)) | (down & ((ratio < 1 - low) | (ratio > last)))
