"""Pieces of rows of like length: each row once, and results back in the rows' own order."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from encore.models.packing import in_order, longest_first, shortest_first
from encore.recipe.portion import piece_rows

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=40)


@given(LENGTHS, st.integers(1, 50))
def test_shortest_first_keeps_the_order_of_equal_lengths(lengths, rows):
    pieces = shortest_first(lengths, rows)
    assert [len(piece) for piece in pieces[:-1]] == [rows] * (len(pieces) - 1)
    order = [i for piece in pieces for i in piece]
    assert order == sorted(range(len(lengths)), key=lambda i: (lengths[i], i))


@given(LENGTHS, st.integers(1, 50))
def test_results_come_back_in_order(lengths, rows):
    values = torch.arange(len(lengths))
    pieces = longest_first(torch.tensor(lengths), rows)
    assert torch.equal(in_order([values[piece] for piece in pieces], pieces), values)


def test_piece_rows():
    assert [piece_rows(rows) for rows in (1, 32, 33, 100)] == [8, 8, 9, 25]
    assert piece_rows(100, smallest=32) == 32
