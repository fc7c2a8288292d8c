"""The order of training prompts from several tasks, in which each rollout has its share of every domain."""

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import lcm
from typing import Any

from datasets import concatenate_datasets


def needed(args: Any) -> int:
    """Return the number of prompts in all rollouts that `max_steps` of the GRPOConfig `args` need."""
    # number of micro-batches in all updates on one rollout
    updates = args.steps_per_generation * args.num_iterations
    rollouts = -(-args.max_steps * args.gradient_accumulation_steps // updates)
    return rollouts * (args.generation_batch_size // args.num_generations)


def mixed(problems: Mapping[str, Any], shares: Mapping[str, float], prompts: int, seed: int) -> Any:
    """Return a dataset of `prompts` prompts of all domains in training order, with the column `domain`.

    `problems` has a dataset of encore.data.prompts for each domain. In each lap through a domain its prompts
    come in a new order, which depends on the seed and the domain alone.
    """
    parts = [data.add_column("domain", [name] * len(data)) for name, data in problems.items()]
    starts = {name: sum(len(data) for data in parts[:place]) for place, name in enumerate(problems)}
    laps = {name: _laps(len(data), f"domain {name} {seed}") for name, data in problems.items()}
    order = [starts[name] + next(laps[name]) for name in turns(shares, prompts)]
    return concatenate_datasets(parts).select(order)


def turns(shares: Mapping[str, float], n: int) -> Iterator[str]:
    """Yield the domain of each of n prompts: always the domain that is farthest below its share.

    Suppose that P prompts times each share are whole numbers. Then any P prompts in a row that begin at a
    multiple of P have exactly these numbers of each domain.
    """
    exact = {name: Fraction(str(share)) for name, share in shares.items()}
    scale = lcm(*(share.denominator for share in exact.values()))
    weights = {name: int(share * scale) for name, share in exact.items()}
    credit, every = dict.fromkeys(weights, 0), sum(weights.values())
    for _ in range(n):
        for name, weight in weights.items():
            credit[name] += weight
        chosen = max(credit, key=lambda name: credit[name])
        credit[chosen] -= every
        yield chosen


def _laps(size: int, name: str) -> Iterator[int]:
    """Yield the numbers below `size` in laps without end; each lap has every number once."""
    lap = 0
    while True:
        order = list(range(size))
        random.Random(f"{name} {lap}").shuffle(order)
        yield from order
        lap += 1
