"""Batches of sequences with little padding."""

import torch
from torch.nn.utils.rnn import pad_sequence

IGNORED = -100  # label of a position without a loss


def document(prompt: list[int], completion: list[int]) -> dict[str, list[int]]:
    """`input_ids` and `labels` of a document whose prompt carries no loss."""
    return {"input_ids": [*prompt, *completion], "labels": [IGNORED] * len(prompt) + completion}


def collate(documents: list[dict[str, list[int]]], pad: int) -> dict[str, torch.Tensor]:
    """Pad on the right: `input_ids` and `labels`, both (batch, time).

    No attention mask: a causal model's real tokens never see the padding after them.
    """
    return {
        name: pad_sequence([torch.tensor(d[name]) for d in documents], batch_first=True, padding_value=value)
        for name, value in (("input_ids", pad), ("labels", IGNORED))
    }


def to_the_left(ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows with their real tokens first, in order, and their lengths: (batch, time), (batch,)."""
    order = torch.argsort(mask == 0, dim=1, stable=True)
    return ids.gather(1, order), mask.sum(dim=1)


def longest_first(lengths: torch.Tensor, rows: int) -> list[torch.Tensor]:
    """Indices of all rows, sorted by length and cut into pieces of at most `rows`, longest first."""
    return list(torch.argsort(lengths, descending=True, stable=True).split(rows))
