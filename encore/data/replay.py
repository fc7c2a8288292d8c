"""The order of prompts in iterative GRPO, which repeats earlier prompts (DeepSeekMath §4.1.4)."""

import random
from typing import Any

from encore.errors import UserError


def replay_order(available: int, args: Any, every: int, share: float, seed: int) -> list[int]:
    """Return the order that `replay` gives for a GRPOConfig, in iterations of `every` optimizer steps.

    Raises UserError unless an iteration is a number of complete rollouts, and if there are too few prompts.
    """
    rollout = args.generation_batch_size // args.num_generations  # number of prompts in a rollout
    # number of micro-batches in all updates on one rollout
    updates = args.steps_per_generation * args.num_iterations
    rollouts, rest = divmod(every * args.gradient_accumulation_steps, updates)
    if rest:
        raise UserError(
            f"replay.every: {every} optimizer steps are no whole number of rollouts; each rollout has "
            f"{updates / args.gradient_accumulation_steps:g} steps"
        )
    return replay(available, rollouts * rollout, -(-args.max_steps // every), share, seed)


def replay(available: int, size: int, iterations: int, share: float, seed: int) -> list[int]:
    """Return the numbers of prompts, below `available`, in the order of training, `size` in each iteration.

    From the second iteration on, the `share` of its prompts (rounded) is drawn without replacement from the
    prompts of all earlier iterations, and the others are new. In DeepSeekMath it is the reward model that
    learns from the replayed prompts. Raises UserError if there are not enough new prompts.
    """
    old = round(share * size)
    needed = iterations * size - (iterations - 1) * old
    if needed > available:
        raise UserError(
            f"problems: {needed} needed for {iterations} iterations of {size} prompts, but there are "
            f"{available}"
        )
    rng = random.Random(f"replay {seed}")
    new = rng.sample(range(available), needed)
    order, used = new[:size], size
    for _ in range(iterations - 1):
        iteration = rng.sample(new[:used], old) + new[used : used + size - old]
        used += size - old
        rng.shuffle(iteration)
        order += iteration
    return order
