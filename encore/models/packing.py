"""Functions for batches of token sequences with little padding: rows of similar length run together."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from encore.recipe.portion import piece_rows

IGNORED = -100  # label of a position without a loss


def document(prompt: list[int], completion: list[int]) -> dict[str, list[int]]:
    """Return `input_ids` and `labels` of a document whose prompt carries no loss."""
    return {"input_ids": [*prompt, *completion], "labels": [IGNORED] * len(prompt) + completion}


def dialogue(exchanges: Sequence[tuple[list[int], list[int]]]) -> dict[str, list[int]]:
    """Return one document of several prompts and completions in turn."""
    parts = [document(prompt, completion) for prompt, completion in exchanges]
    return {name: [number for part in parts for number in part[name]] for name in ("input_ids", "labels")}


def collate(documents: list[dict[str, list[int]]], pad: int) -> dict[str, torch.Tensor]:
    """Return documents padded on the right: `input_ids` and `labels`, both (batch, time).

    There is no attention mask: a causal model's real tokens never see the padding after them.
    """
    return {
        name: pad_sequence([torch.tensor(d[name]) for d in documents], batch_first=True, padding_value=value)
        for name, value in (("input_ids", pad), ("labels", IGNORED))
    }


def padded(sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids (rows, time), right-padded with 0, and the position of each last token (rows,)."""
    rows = [torch.tensor(sequence) for sequence in sequences]
    return pad_sequence(rows, batch_first=True), torch.tensor([len(row) - 1 for row in rows])


def to_the_left(ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows with their real tokens first, in order, (batch, time), and their lengths, (batch,)."""
    order = torch.argsort(mask == 0, dim=1, stable=True)
    return ids.gather(1, order), mask.sum(dim=1)


# -- rows of like length -------------------------------------------------------------------------------------


def shortest_first(lengths: Sequence[int], rows: int) -> list[list[int]]:
    """Return the indices of all rows, shortest first, cut into pieces of at most `rows` rows."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[start : start + rows] for start in range(0, len(order), rows)]


def longest_first(lengths: torch.Tensor, rows: int) -> list[torch.Tensor]:
    """Return the indices of all rows, longest first, cut into pieces of at most `rows` rows."""
    return list(torch.argsort(lengths, descending=True, stable=True).split(rows))


def within_positions(lengths: Sequence[int], positions: int) -> list[list[int]]:
    """Return the indices of all rows, shortest first, cut into pieces of at most `positions` positions.

    The positions of a piece are its tokens and its padding. A row that is longer is a piece of its own. There
    are at least PIECES pieces, unless they would have fewer than 32 rows.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    most = piece_rows(len(order), smallest=32)
    cut: list[list[int]] = []
    for i in order:  # the last row of a piece is its longest
        if not cut or len(cut[-1]) == most or lengths[i] * (len(cut[-1]) + 1) > positions:
            cut.append([])
        cut[-1].append(i)
    return cut


def in_order(values: Sequence[torch.Tensor], pieces: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the `values` of all pieces, in the order of the rows before they were sorted."""
    return torch.cat(list(values))[torch.argsort(torch.cat(list(pieces)))]


def distinct(values: Iterable[Hashable]) -> tuple[list[int], list[Any]]:
    """Return each value's index among the distinct values, and the distinct values.

    Equal values are then computed once.
    """
    number: dict[Hashable, int] = {}
    places = [number.setdefault(value, len(number)) for value in values]
    return places, list(number)
