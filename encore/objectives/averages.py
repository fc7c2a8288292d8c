"""Means over the tokens in the loss, where `mask` is 1."""

from collections.abc import Sequence

import torch


def token_mean(values: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """Return the mean over the tokens where `mask` is 1, or over all tokens without a mask."""
    return values.mean() if mask is None else (values * mask).sum() / mask.sum()


def completion_means(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean over the tokens of each completion, (batch, time) -> (batch,).

    The mean of a completion without a token in the loss is 0.
    """
    return (values * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)


def step_tokens(masks: Sequence[torch.Tensor], micro_step: int, window: int) -> torch.Tensor:
    """Return the number of tokens in the loss of an optimizer step, (), by which DAPO Eq. 8 and CISPO divide.

    It is the step to which micro-batch `micro_step` belongs. `masks` are the masks of all micro-batches of a
    rollout; an optimizer step takes `window` of them, one after another.
    """
    first = micro_step % len(masks) // window * window
    return torch.stack([mask.sum() for mask in masks[first : first + window]]).sum()
