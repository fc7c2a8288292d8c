"""Means over the tokens in the loss, and the sum over reward functions."""

import math

import torch

from encore.objectives.advantages import total
from encore.objectives.averages import completion_means, step_tokens, token_mean

VALUES = torch.tensor([[1.0, 2.0, 9.0], [4.0, 9.0, 9.0], [9.0, 9.0, 9.0]])
MASK = torch.tensor([[1, 1, 0], [1, 0, 0], [0, 0, 0]])


def test_tokens_weigh_alike_or_within_their_completion():
    assert token_mean(VALUES, MASK) == 7 / 3
    assert token_mean(VALUES) == VALUES.mean()
    assert completion_means(VALUES, MASK).tolist() == [1.5, 4.0, 0.0]


def test_a_step_has_the_tokens_of_its_own_micro_batches():
    masks = [torch.ones(1, length) for length in (1, 2, 4, 8)]
    assert [int(step_tokens(masks, step, 2)) for step in range(6)] == [3, 3, 12, 12, 3, 3]
    assert int(step_tokens(masks, 2, 4)) == 15


def test_a_function_without_a_reward_adds_nothing():
    rewards = torch.tensor([[1.0, 0.5], [math.nan, 0.5]])
    assert total(rewards, torch.tensor([2.0, 1.0])).tolist() == [2.5, 0.5]
