"""Batches of sequences with little padding."""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

IGNORED = -100  # label of a position without a loss
PIECES = 4  # of a batch at least: rows of like length, so that little is padded
SMALLEST = 32  # rows of a piece


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


def padded(sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids (rows, time), filled up with 0 on the right, and the position of each row's last (rows,)."""
    rows = [torch.tensor(sequence) for sequence in sequences]
    return pad_sequence(rows, batch_first=True), torch.tensor([len(row) - 1 for row in rows])


def pieces(lengths: Sequence[int], positions: int) -> list[list[int]]:
    """Indices of all rows by length, cut into pieces of at most `positions` when padded, or of one row."""
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    most = max(SMALLEST, -(-len(order) // PIECES))
    cut: list[list[int]] = []
    for i in order:  # the longest of a piece is its last
        if not cut or len(cut[-1]) == most or lengths[i] * (len(cut[-1]) + 1) > positions:
            cut.append([])
        cut[-1].append(i)
    return cut
