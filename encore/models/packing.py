"""Batches of sequences with little padding: rows of like length run together."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

IGNORED = -100  # label of a position without a loss
PIECES = 4  # of a batch: more of them pad less, but make the matrix products smaller


def document(prompt: list[int], completion: list[int]) -> dict[str, list[int]]:
    """`input_ids` and `labels` of a document whose prompt carries no loss."""
    return {"input_ids": [*prompt, *completion], "labels": [IGNORED] * len(prompt) + completion}


def dialogue(exchanges: Sequence[tuple[list[int], list[int]]]) -> dict[str, list[int]]:
    """One document of several prompts and completions in turn."""
    parts = [document(prompt, completion) for prompt, completion in exchanges]
    return {name: [number for part in parts for number in part[name]] for name in ("input_ids", "labels")}


def collate(documents: list[dict[str, list[int]]], pad: int) -> dict[str, torch.Tensor]:
    """Pad on the right: `input_ids` and `labels`, both (batch, time).

    No attention mask: a causal model's real tokens never see the padding after them.
    """
    return {
        name: pad_sequence([torch.tensor(d[name]) for d in documents], batch_first=True, padding_value=value)
        for name, value in (("input_ids", pad), ("labels", IGNORED))
    }


def padded(sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids (rows, time), padded with 0 on the right, and the place of each row's last token (rows,)."""
    rows = [torch.tensor(sequence) for sequence in sequences]
    return pad_sequence(rows, batch_first=True), torch.tensor([len(row) - 1 for row in rows])


def to_the_left(ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows with their real tokens first, in order, and their lengths: (batch, time), (batch,)."""
    order = torch.argsort(mask == 0, dim=1, stable=True)
    return ids.gather(1, order), mask.sum(dim=1)


# -- rows of like length -------------------------------------------------------------------------------------


def piece_rows(rows: int, smallest: int = 8) -> int:
    """How many rows a piece has when a batch of `rows` is cut into PIECES; at least `smallest`."""
    return max(smallest, -(-rows // PIECES))


def shortest_first(lengths: Sequence[int], rows: int) -> list[list[int]]:
    """Indices of all rows, sorted by length and cut into pieces of at most `rows`, shortest first."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[start : start + rows] for start in range(0, len(order), rows)]


def longest_first(lengths: torch.Tensor, rows: int) -> list[torch.Tensor]:
    """Indices of all rows, sorted by length and cut into pieces of at most `rows`, longest first."""
    return list(torch.argsort(lengths, descending=True, stable=True).split(rows))


def within_positions(lengths: Sequence[int], positions: int) -> list[list[int]]:
    """Indices of all rows, shortest first, in pieces of at most `positions` tokens, padding included.

    A row that is longer makes a piece alone. There are PIECES pieces at least, unless they would have fewer
    than 32 rows.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    most = piece_rows(len(order), smallest=32)
    cut: list[list[int]] = []
    for i in order:  # the longest of a piece is its last
        if not cut or len(cut[-1]) == most or lengths[i] * (len(cut[-1]) + 1) > positions:
            cut.append([])
        cut[-1].append(i)
    return cut


def in_order(values: Sequence[torch.Tensor], pieces: Sequence[torch.Tensor]) -> torch.Tensor:
    """The `values` of all pieces, one after another, as the rows stood before they were sorted."""
    return torch.cat(list(values))[torch.argsort(torch.cat(list(pieces)))]


def distinct(values: Iterable[Hashable]) -> tuple[list[int], list[Any]]:
    """The place of each value among the distinct ones, and those: what is equal is computed once."""
    number: dict[Hashable, int] = {}
    places = [number.setdefault(value, len(number)) for value in values]
    return places, list(number)
