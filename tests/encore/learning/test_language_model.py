"""The documents of a step are those of a plain random order; only their arrangement saves padding."""

from types import SimpleNamespace
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from encore.learning.language_model import InWindows, SortedWindows
from encore.models.packing import IGNORED, collate, document


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 9), st.integers(0, 5), st.integers(0, 3))
def test_windows(lengths: list[int], window: int, seed: int, epoch: int):
    sampler = SortedWindows(lengths, window, seed)
    sampler.set_epoch(epoch)
    order = list(sampler)
    assert len(order) == len(sampler) == len(lengths) // window * window
    assert len(set(order)) == len(order)
    for start in range(0, len(order), window):
        sizes = [lengths[i] for i in order[start : start + window]]
        assert sizes == sorted(sizes)
    again = SortedWindows(lengths, window, seed)
    again.set_epoch(epoch)
    assert list(again) == order


def test_epochs_differ():
    sampler = SortedWindows([1] * 50, 5, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first


def test_collate():
    batch = collate([document([5, 6], [7]), document([5], [7, 8, 9])], pad=0)
    assert batch["input_ids"].tolist() == [[5, 6, 7, 0], [5, 7, 8, 9]]
    assert batch["labels"].tolist() == [[IGNORED, IGNORED, 7, IGNORED], [IGNORED, 7, 8, 9]]
    assert batch["input_ids"].dtype == torch.long


def test_a_window_is_an_optimizer_step():
    args = SimpleNamespace(train_batch_size=2, gradient_accumulation_steps=4, world_size=2, seed=0)
    trainer: Any = object.__new__(InWindows)
    trainer.args = args
    order = [*trainer._get_train_sampler([{"input_ids": [0] * length} for length in range(40)])]
    assert len(order) == 32
    windows = [order[start : start + 16] for start in (0, 16)]
    assert all(window == sorted(window) for window in windows)
    assert windows[0][-1] > windows[1][0]  # of a random order, not of one that is sorted throughout
