"""Each advantage is its equation, written out once more with plain loops."""

import math
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.objectives.advantages import OF_GROUP, MovingAverage, pass_at_k

REWARDS = st.integers(2, 6).flatmap(
    lambda size: st.lists(
        st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), min_size=size, max_size=size),
        min_size=1,
        max_size=4,
    )
)


def by_hand(name: str, group: list[float]) -> list[float]:
    if name == "leave_one_out":
        return [r - sum(group[:i] + group[i + 1 :]) / (len(group) - 1) for i, r in enumerate(group)]
    if name == "best":
        return [r if all(r >= other for other in group) else 0.0 for r in group]
    if name == "positive":
        return [float(r > 0) for r in group]
    if name == "negative":
        return [-float(r <= 0) for r in group]
    if name == "weighted":
        return [0.1 if r > 0 else -1.0 for r in group]
    if name == "above_mean":
        mean = sum(group) / len(group)
        std = math.sqrt(sum((r - mean) ** 2 for r in group) / (len(group) - 1))
        return [max(0.0, (r - mean) / (std + 1e-4)) for r in group]
    return group


@pytest.mark.parametrize("name", OF_GROUP)
@settings(max_examples=30)
@given(REWARDS)
def test_of_a_group(name: str, groups: list[list[float]]):
    rewards = torch.tensor(groups)
    kept = rewards.clone()
    found = OF_GROUP[name](rewards)
    expected = torch.tensor([by_hand(name, group) for group in groups])
    torch.testing.assert_close(found, expected)
    assert torch.equal(rewards, kept)  # they are logged afterwards


@settings(max_examples=30)
@given(REWARDS, st.floats(-5, 5))
def test_leave_one_out_has_mean_zero_ignores_a_shift_and_is_scaled_centring(groups, shift):
    rewards, size = torch.tensor(groups, dtype=torch.float64), len(groups[0])
    found = OF_GROUP["leave_one_out"](rewards)
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    torch.testing.assert_close(found, size / (size - 1) * centred)
    torch.testing.assert_close(OF_GROUP["leave_one_out"](rewards + shift), found)


@settings(max_examples=50)
@given(st.lists(st.booleans(), min_size=2, max_size=9), st.data())
def test_pass_at_k_is_the_mean_over_all_choices(right, data):
    k = data.draw(st.integers(1, len(right)))
    rewards = torch.tensor([right], dtype=torch.float64)
    choices = list(combinations(range(len(right)), k))
    rewarded = [float(any(right[i] for i in choice)) for choice in choices]
    mean = sum(rewarded) / len(choices)
    std = math.sqrt(mean * (1 - mean))
    expected = []
    for i in range(len(right)):
        own = [reward for choice, reward in zip(choices, rewarded, strict=True) if i in choice]
        expected.append((sum(own) / len(own) - mean) / std if std else 0.0)
    torch.testing.assert_close(pass_at_k(rewards, k), torch.tensor([expected], dtype=torch.float64))
    if k == 1:  # pass@1 is GRPO's objective, with the std of a population
        std = rewards.std(correction=0)
        plain = (rewards - rewards.mean()) / std if std else torch.zeros_like(rewards)
        torch.testing.assert_close(pass_at_k(rewards, 1), plain)


@settings(max_examples=30)
@given(st.lists(st.lists(st.floats(-2, 2), min_size=1, max_size=5), min_size=1, max_size=5))
def test_moving_average_is_over_all_earlier_rewards(rollouts):
    baseline, earlier = MovingAverage(), []
    for rollout in rollouts:
        rewards = torch.tensor(rollout, dtype=torch.float64)
        known = earlier or rollout
        expected = [r - sum(known) / len(known) for r in rollout]
        torch.testing.assert_close(baseline.advantages(rewards).tolist(), expected)
        baseline = baseline.after(rewards)
        earlier += rollout
