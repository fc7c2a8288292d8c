r"""Process supervision (DeepSeekMath, arXiv 2402.03300, §4.1.3): advantages from the rewards of single steps.

Of the G completions of a prompt the i-th has K_i steps; step j ends at token index(j) with reward r_i^j, and
R holds the rewards of all steps of all of them. A token's advantage is the sum of the normalised rewards of
the steps that end at it or after it:

    r~_i^j = (r_i^j - mean(R)) / std(R)        A_{i,t} = \sum_{index(j) >= t} r~_i^j

As for TRL's outcome rewards, std has ddof 1 and 1e-4 is added to it. Other rewards play no part.
"""

from collections.abc import Sequence

import torch

GUARD = 1e-4  # TRL's
Steps = list[tuple[int, float]]  # of a completion: token at which a step ends, its reward


def advantages(steps: Sequence[Steps], group_size: int, width: int) -> torch.Tensor:
    """(batch, width): one row for each of `steps`, which hold one group after another.

    `width` is that of the rows that are wanted; the others, as of another process, may be longer.
    """
    longest = max((end for row in steps for end, _ in row), default=0)
    table = torch.zeros(len(steps), max(width, longest) + 1)
    for start in range(0, len(steps), group_size):
        group = steps[start : start + group_size]
        rewards = torch.tensor([reward for row in group for _, reward in row], dtype=torch.float64)
        scores = normalised(rewards).tolist()
        for row, ends in enumerate(group, start):
            for end, _ in ends:
                table[row, end] += scores.pop(0)
    # the sum from each token on
    return table.flip(1).cumsum(1).flip(1)[:, :width]


def normalised(rewards: torch.Tensor) -> torch.Tensor:
    """`rewards` less their mean, over their standard deviation; 0 where there are fewer than two."""
    if len(rewards) < 2:
        return torch.zeros_like(rewards)
    return (rewards - rewards.mean()) / (rewards.std() + GUARD)
