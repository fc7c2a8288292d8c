"""Parts of PPO that need no training."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from papers import GRAPH
from transformers import get_scheduler

from encore.learning.samplers import Sampled
from encore.learning.scoring import Scorer, every_weighted_reward
from encore.recipe.graph import Node


def test_a_completion_has_ended_if_its_last_token_ends_it():
    completions = [[5, 2], [5, 5, 2], [5, 2, 5], [2], [5, 5, 5]]
    trainer: Any = SimpleNamespace(eos_token_ids=[2], accelerator=SimpleNamespace(device="cpu"))
    ended = Scorer(trainer, every_weighted_reward).ended(Sampled([[1]] * 5, completions))
    assert ended.tolist() == [True, True, False, True, False]


def test_instructgpts_rate_rises_from_a_tenth_in_ten_iterations_and_stays():
    """arXiv 2203.02155, App. C.4; an iteration has 8 updates."""
    args = GRAPH.config(Node("instructgpt", "paper", "base-recipe", 0, "ppo", "stage"))["args"]
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule: Any = get_scheduler(
        args["lr_scheduler_type"],
        optimizer,
        num_warmup_steps=args["warmup_steps"],
        num_training_steps=args["max_steps"],
        scheduler_specific_kwargs=args["lr_scheduler_kwargs"],
    )
    rates = [schedule.lr_lambdas[0](step) for step in (0, 40, 80, args["max_steps"] - 1)]
    assert rates == pytest.approx([0.1, 0.55, 1.0, 1.0])
