r"""Process supervision (DeepSeekMath, arXiv 2402.03300, §4.1.3): advantages from the rewards of single steps.

The i-th of the G completions of a prompt has K_i steps. Step j ends at token index(j) with reward r_i^j, and
R is the set of the rewards of all steps of the G completions. The advantage of a token is the sum of the
normalised rewards of the steps that end at the token or after it:

    r~_i^j = (r_i^j - mean(R)) / std(R)        A_{i,t} = \sum_{index(j) >= t} r~_i^j

As with TRL's outcome rewards, std has ddof 1 and 1e-4 is added to it. Rewards of other functions are not
used.
"""

from collections.abc import Sequence

import torch

GUARD = 1e-4  # added to the standard deviation, as in TRL
Steps = list[tuple[int, float]]  # (last token of a step, reward of the step) for each step of a completion


def advantages(steps: Sequence[Steps], group_size: int, width: int) -> torch.Tensor:
    """Return the advantages (batch, width), with a row for each completion in `steps`, group after group.

    `width` is the number of columns to return; `steps` may have longer completions, of other processes.
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
    # sum from each token to the end
    return table.flip(1).cumsum(1).flip(1)[:, :width]


def normalised(rewards: torch.Tensor) -> torch.Tensor:
    """Return `rewards` minus their mean, divided by their std; 0 for fewer than two rewards."""
    if len(rewards) < 2:
        return torch.zeros_like(rewards)
    return (rewards - rewards.mean()) / (rewards.std() + GUARD)
