"""Next-token training on documents, with little padding and an order that a resumed run continues."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Sampler

from encore.learning.resumable import EPOCH_STRIDE, Resumable


class SortedWindows(Sampler[int]):
    """A random order of documents, cut into windows: one for each optimizer step, each sorted by length.

    With gradient accumulation the micro-batches of a step then hold documents of similar length, so there is
    little padding. The documents of a step, and so its gradient, are the same as in the plain random order.
    An incomplete last window is left out.
    """

    def __init__(self, lengths: Sequence[int], window: int, seed: int):
        self.lengths, self.window, self.seed, self.epoch = lengths, window, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) // self.window * self.window

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + EPOCH_STRIDE * self.epoch)
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        for start in range(0, len(self), self.window):
            yield from sorted(order[start : start + self.window], key=lambda i: self.lengths[i])


class InWindows(Resumable):
    """A mixin for a `Trainer` whose data come in an order of `SortedWindows`, with a window for each step."""

    def length(self, row: Any) -> int:
        """Return the number of tokens in a row of the data."""
        return len(row["input_ids"])

    def _get_train_sampler(self, dataset: Any = None):
        data: Any = self.train_dataset if dataset is None else dataset
        window = self.args.train_batch_size * self.args.gradient_accumulation_steps * self.args.world_size
        return SortedWindows([self.length(row) for row in data], window, self.args.seed)


class LanguageModel(InWindows):
    """A trainer on a list of `packing.document`s. It counts the tokens that it has read, without padding."""

    padding = 0  # the token with which `collate` pads

    def training_step(self, model, inputs, num_items_in_batch=None):
        self.state.num_input_tokens_seen += int((inputs["input_ids"] != self.padding).sum())
        return super().training_step(model, inputs, num_items_in_batch)

    def log(self, logs, start_time=None):
        super().log({**logs, "num_tokens": self.state.num_input_tokens_seen}, start_time)
