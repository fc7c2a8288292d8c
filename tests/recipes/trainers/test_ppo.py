"""Parts of PPO that need no training."""

from types import SimpleNamespace
from typing import Any

import torch

from recipes.trainers.ppo import PPO


def test_a_completion_has_ended_if_its_last_token_ends_it():
    batch = {
        "completion_ids": torch.tensor([[5, 2, 0], [5, 5, 2], [5, 2, 5], [2, 0, 0], [5, 5, 5]]),
        "completion_mask": torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 0, 0], [1, 1, 1]]),
    }
    trainer: Any = SimpleNamespace(eos_token_ids=[2])
    assert PPO.ended(trainer, batch).tolist() == [True, True, False, True, False]
