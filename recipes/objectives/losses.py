"""Losses that a trainer of ours minimises: policy gradient, critic, K-wise comparison."""

import torch
from torch.nn.functional import logsigmoid

from recipes.objectives.ratios import ratios

LOSSES = ("naive", "unclipped", "clipped")


def policy_gradient(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    deltas: torch.Tensor,
    mode: str,
    epsilon: float = 0.01,
    log_ratio: bool = False,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """The scalar to minimise: the mean over all response tokens of

        naive      -delta log pi
        unclipped  -delta pi / pi_old
        clipped    -min(delta pi / pi_old, delta clip(pi / pi_old, 1 - epsilon, 1 + epsilon))

    `log_probs`, `old_log_probs` (a constant) and `mask`: (..., time); `deltas`: (...).
    """
    delta = deltas.unsqueeze(-1)
    if mode == "naive":
        objective = delta * log_probs
    else:
        ratio = ratios(log_probs, old_log_probs, log_ratio)
        objective = delta * ratio
        if mode == "clipped":
            objective = torch.minimum(objective, delta * ratio.clamp(1 - epsilon, 1 + epsilon))
        elif mode != "unclipped":
            raise ValueError(f"no loss {mode!r}")
    return -mean(objective, mask)


def mean(values: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """The mean of `values` where `mask` is 1, of all of them without a mask."""
    return values.mean() if mask is None else (values * mask).sum() / mask.sum()


def value_terms(
    values: torch.Tensor, old: torch.Tensor, returns: torch.Tensor, clip: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The value loss of each token, and where the clip has cut its gradient; `clip` 0: no clip."""
    plain = (values - returns).square()
    if not clip:
        return plain / 2, torch.zeros_like(plain, dtype=torch.bool)
    held = (old + (values - old).clamp(-clip, clip) - returns).square()
    return torch.maximum(plain, held) / 2, held > plain


def k_wise(
    rewards: torch.Tensor, batch: dict[str, torch.Tensor], centre: float | None = None
) -> torch.Tensor:
    """Eq. 1 of `rewards` (rows,), as a mean over the elements of a `collate`d batch.

    `centre`: weight of (r_w + r_l)^2, TRL's center_rewards_coefficient (Eisenstein et al. 2023).
    """
    better, worse = rewards[batch["better"]], rewards[batch["worse"]]  # (pairs,)
    each = -logsigmoid(better - worse)
    if centre is not None:
        each = each + centre * (better + worse) ** 2
    return (batch["weight"] * each).sum()
