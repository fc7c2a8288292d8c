"""The tensors of a rollout, with functions to choose, join, shuffle and cut them.

A rollout is first `Tokens`, the sampled tokens. Log-probabilities and advantages make it a `Minibatch`, with
all completions of the rollout or of a micro-batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

AnyTokens = TypeVar("AnyTokens", bound="Tokens")


@dataclass(frozen=True)
class Tokens:
    """B completions of at most T tokens; their prompts of at most P tokens are padded on the left."""

    prompt_ids: Tensor  # (B, P)
    prompt_mask: Tensor  # (B, P) 1 at real tokens
    completion_ids: Tensor  # (B, T)
    completion_mask: Tensor  # (B, T) 1 at real tokens; all 0 in truncated completions left out of the loss
    own: Tensor | None = None  # (B, T) 1 at the policy's tokens, 0 at a tool's; None if all are the policy's

    @property
    def ids(self) -> Tensor:
        """The tokens of prompt and completion, (B, P + T)."""
        return torch.cat([self.prompt_ids, self.completion_ids], dim=1)

    @property
    def mask(self) -> Tensor:
        """The mask of prompt and completion, (B, P + T): 1 at real tokens."""
        return torch.cat([self.prompt_mask, self.completion_mask], dim=1)

    @property
    def loss_mask(self) -> Tensor:
        """The mask of the loss, (B, T): 1 at the tokens in it."""
        return self.completion_mask if self.own is None else self.completion_mask * self.own

    @property
    def time(self) -> int:
        """The width T of the completions."""
        return self.completion_ids.shape[1]

    def __len__(self) -> int:
        return len(self.completion_ids)


@dataclass(frozen=True, kw_only=True)
class Minibatch(Tokens):
    """Completions and everything that their loss is computed from; log-probabilities are in nats."""

    advantages: Tensor  # (B,), one for each completion, or (B, T), one for each token
    old: Tensor | None = None  # (B, T) log pi_old; None if a rollout has one update, or not yet computed
    ref: Tensor | None = None  # (B, T) log pi_ref; None without KL in the loss, or if not yet computed
    sampled: Tensor | None = None  # (B, T) the sampler's log-probabilities, NaN where it reports none
    correction: Tensor | None = None  # (B, T) or (B, 1) pi_old / pi_sampler, clipped; None without correction
    noise: Tensor | None = None  # (B, T) noise that is added to log pi_old
    values: Tensor | None = None  # (B, T) the critic's values when the completions were sampled
    returns: Tensor | None = None  # (B, T) the targets of the critic
    # (B, H) the prompts from which a teacher predicts the completions, padded on the left; None if the
    # teacher reads the policy's prompts
    taught_prompt_ids: Tensor | None = None
    taught_prompt_mask: Tensor | None = None  # (B, H) 1 at real tokens


def rows(batch: AnyTokens, chosen: Sequence[int] | Tensor | slice) -> AnyTokens:
    """Return the completions at the indices `chosen`, in this order."""
    return _each(batch, lambda name, value: value[chosen])


def shuffled(batch: AnyTokens) -> AnyTokens:
    """Return the completions in a random order."""
    return rows(batch, torch.randperm(len(batch)))


def by_length(batch: AnyTokens, parts: int) -> AnyTokens:
    """Return `parts` equal parts, one after another, each from its longest text to its shortest."""
    lengths = batch.mask.sum(dim=1).view(parts, -1)
    order = lengths.argsort(dim=1, descending=True, stable=True)
    starts = torch.arange(parts, device=order.device)[:, None] * lengths.shape[1]
    return rows(batch, (order + starts).flatten())


def cut(batch: AnyTokens, parts: int) -> list[AnyTokens]:
    """Return `parts` equal parts, one after another."""
    size = len(batch) // parts
    return [rows(batch, slice(start, start + size)) for start in range(0, parts * size, size)]


def together(parts: Sequence[AnyTokens]) -> AnyTokens:
    """Return the whole batch that `cut` has cut into `parts`."""
    return _each(parts[0], lambda name, value: torch.cat([vars(part)[name] for part in parts]))


def joined(parts: Sequence[AnyTokens], pad_token: int) -> AnyTokens:
    """Return the completions of all `parts`, one after another, as wide as the longest of them.

    Prompts are padded on the left, everything else on the right. Ids are padded with `pad_token`, other
    tensors with 0.
    """

    def join(name: str, value: Tensor) -> Tensor:
        values = [vars(part)[name] for part in parts]
        if value.ndim > 1:
            width = max(value.shape[1] for value in values)
            fill = pad_token if name.endswith("_ids") else 0
            values = [_widened(value, width, fill, left=name.startswith("prompt_")) for value in values]
        return torch.cat(values)

    return _trimmed(_each(parts[0], join), pad_token)


def on_device(batch: AnyTokens, device: Any) -> AnyTokens:
    """Return the completions on `device`."""
    return _each(batch, lambda name, value: value.to(device))


def _each(batch: AnyTokens, change: Callable[[str, Tensor], Tensor]) -> AnyTokens:
    """Return `batch` with each tensor changed by the function `change`, which also takes the field's name."""
    return replace(
        batch, **{name: change(name, value) for name, value in vars(batch).items() if value is not None}
    )


def _widened(tensor: Tensor, width: int, fill: int, left: bool) -> Tensor:
    """Pad a tensor to a width: (B, T) -> (B, width)."""
    missing = tensor.new_full((len(tensor), width - tensor.shape[1]), fill)
    return torch.cat([missing, tensor] if left else [tensor, missing], dim=1)


def _trimmed(batch: AnyTokens, pad_token: int) -> AnyTokens:
    """Return `batch` without the columns in which every completion is padding."""
    prompt = int(batch.prompt_mask.sum(dim=1).max())
    # the mask alone would not do: it is 0 throughout a truncated completion that is left out of the loss
    real = (batch.completion_ids != pad_token) | (batch.completion_mask != 0)
    completion = int(real.any(dim=0).nonzero().max()) + 1

    def trim(name: str, value: Tensor) -> Tensor:
        if value.ndim < 2:
            return value
        if name.startswith("prompt_"):
            return value[:, -prompt:]
        return value[:, :completion] if value.shape[1] == real.shape[1] else value

    return _each(batch, trim)
