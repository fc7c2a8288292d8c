"""Means over the tokens in the loss, which are those where `mask` is 1."""

from collections.abc import Sequence

import torch


def token_mean(values: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """The mean over all tokens where `mask` is 1, or over all of them without a mask."""
    return values.mean() if mask is None else (values * mask).sum() / mask.sum()


def completion_means(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mean over the tokens of each completion: (batch, time) -> (batch,); 0 for one without a token."""
    return (values * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)


def step_tokens(masks: Sequence[torch.Tensor], micro_step: int, window: int) -> torch.Tensor:
    """How many tokens an optimizer step has in its loss: the divisor of DAPO Eq. 8 and of CISPO.

    `masks` are those of all micro-batches of a rollout; a step takes `window` of them, one after another.
    The step is the one that micro-batch `micro_step` belongs to.
    """
    first = micro_step % len(masks) // window * window
    return torch.stack([mask.sum() for mask in masks[first : first + window]]).sum()
