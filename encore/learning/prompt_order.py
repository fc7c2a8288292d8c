"""The order of the prompts of a run, which depends on the seed and the number of the epoch alone."""

from typing import Any

import torch
from trl.trainer.utils import RepeatSampler

from encore.learning.resumable import EPOCH_STRIDE
from encore.learning.scoring import Row


class EpochOrder(RepeatSampler):
    """TRL's sampler of prompts, with an order fixed by the number of the epoch.

    In epoch 0 it is TRL's order.
    """

    epoch = 0
    seed: int

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self):
        if self.shuffle:
            self.generator.manual_seed(self.seed + EPOCH_STRIDE * self.epoch)
        return super().__iter__()


def prompts_of(number: int, prompts: int, available: int, seed: int, shuffle: bool = True) -> list[int]:
    """Return the indices of the `prompts` prompts of round `number`; rounds count from 0 over the whole run.

    They are in the order of `EpochOrder`: a permutation of the `available` prompts in each epoch, without the
    last prompts if they do not fill a round. Without dynamic sampling a round is a rollout.
    """
    epoch, place = divmod(number, available // prompts)
    generator = torch.Generator().manual_seed(seed + EPOCH_STRIDE * epoch)
    order = torch.randperm(available, generator=generator) if shuffle else torch.arange(available)
    return order[place * prompts : (place + 1) * prompts].tolist()


def rows_of(trainer: Any, number: int, size: int) -> list[Row]:
    """Return the `size` rows of this process in round `number`; each prompt is repeated for its group."""
    accelerator, group = trainer.accelerator, trainer.num_generations
    prompts = size * accelerator.num_processes // group
    data = trainer.train_dataset
    chosen = prompts_of(number, prompts, len(data), trainer.args.seed, trainer.shuffle_dataset)
    places = range(accelerator.process_index * size, (accelerator.process_index + 1) * size)
    rows = {place: data[chosen[place]] for place in {place // group for place in places}}
    return [dict(rows[place // group]) for place in places]
