"""Next-token training on whole documents, with little padding and an order that survives a resume."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Sampler

from recipes.trainers.resume import EPOCH_STRIDE, ExactResume

IGNORED = -100  # label of a padding position


class SortedWindows(Sampler[int]):
    """A random order whose windows, one optimizer step each, are sorted by length.

    With gradient accumulation the micro-batches of a step then hold documents of like length, so little is
    padded, while the step's documents, hence its gradient, are those of a plain random order. An incomplete
    last window is left out.
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


def collate(documents: list[dict[str, list[int]]], pad: int) -> dict[str, torch.Tensor]:
    """Pad on the right: `input_ids` and `labels`, both (batch, time).

    No attention mask: a causal model's real tokens never see the padding after them.
    """
    rows = [torch.tensor(document["input_ids"]) for document in documents]
    return {
        "input_ids": torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad),
        "labels": torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=IGNORED),
    }


class LanguageModel(ExactResume):
    """Trainer on a list of `{"input_ids": […]}`; it counts the trained tokens, without the padding."""

    def _get_train_sampler(self, dataset: Any = None):
        data: Any = self.train_dataset if dataset is None else dataset
        window = self.args.train_batch_size * self.args.gradient_accumulation_steps * self.args.world_size
        return SortedWindows([len(d["input_ids"]) for d in data], window, self.args.seed)

    def training_step(self, model, inputs, num_items_in_batch=None):
        self.state.num_input_tokens_seen += int((inputs["labels"] != IGNORED).sum())
        return super().training_step(model, inputs, num_items_in_batch)

    def log(self, logs, start_time=None):
        super().log({**logs, "num_tokens": self.state.num_input_tokens_seen}, start_time)
