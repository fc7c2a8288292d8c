"""The order of prompts with replay of earlier iterations."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.data.replay import replay, replay_order
from encore.errors import UserError


@given(st.integers(1, 12), st.integers(1, 6), st.floats(0, 0.99), st.integers(0, 9))
def test_an_iteration_has_its_share_of_earlier_prompts_and_new_ones(size, iterations, share, seed):
    old = round(share * size)
    needed = size + (iterations - 1) * (size - old)
    order = replay(needed + 3, size, iterations, share, seed)
    assert order == replay(needed + 3, size, iterations, share, seed)
    assert set(order) <= set(range(needed + 3))
    assert len(order) == size * iterations
    earlier: set[int] = set()
    for start in range(0, len(order), size):
        iteration = order[start : start + size]
        assert len(set(iteration)) == size  # without replacement, and new ones once
        assert len(earlier & set(iteration)) == (old if start else 0)
        earlier |= set(iteration)
    assert len(earlier) == needed
    with pytest.raises(UserError, match=f"problems: {needed} needed for {iterations} iterations"):
        replay(needed - 1, size, iterations, share, seed)


def test_seeds_differ_and_old_prompts_come_from_all_iterations():
    order = replay(5000, 100, 20, 0.5, 0)
    assert order != replay(5000, 100, 20, 0.5, 1)
    replayed = {n for n in order[1900:] if n in order[:1900]}
    born = {order.index(n) // 100 for n in replayed}
    assert min(born) == 0
    assert max(born) > 15
    assert order[1900:1950] != sorted(order[1900:1950], key=lambda n: n in replayed)  # mixed with the new


# 4 prompts a rollout; an optimizer step is of 1/4, 1/8 (two epochs) or 1 rollout, or of 2
@pytest.mark.parametrize(
    ("slices", "epochs", "accumulate", "every", "size"),
    [(4, 1, 1, 8, 8), (4, 2, 1, 8, 4), (4, 1, 4, 3, 12), (2, 1, 4, 3, 24)],
)
def test_iterations_are_of_optimizer_steps(slices, epochs, accumulate, every, size):
    args = SimpleNamespace(
        generation_batch_size=16,
        num_generations=4,
        steps_per_generation=slices,
        num_iterations=epochs,
        gradient_accumulation_steps=accumulate,
        max_steps=3 * every - 1,
    )
    assert replay_order(900, args, every, 0.25, 7) == replay(900, size, 3, 0.25, 7)


def test_an_iteration_is_of_whole_rollouts():
    args = SimpleNamespace(
        generation_batch_size=16,
        num_generations=4,
        steps_per_generation=4,
        num_iterations=1,
        gradient_accumulation_steps=1,
        max_steps=8,
    )
    with pytest.raises(UserError, match=r"replay.every: 6 .* each rollout has 4 steps"):
        replay_order(900, args, 6, 0.25, 7)
