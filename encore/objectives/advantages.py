r"""Advantages that TRL has no argument for, as pure functions of the rewards of a rollout.

`total` weights and adds the rewards of several functions. Each function of the table takes rewards (groups,
G), a row for the G completions of a prompt, and returns the same shape.

| name           | A_i                                 | source                                           |
|----------------|-------------------------------------|--------------------------------------------------|
| leave_one_out  | r_i - mean of the group's others    | RLOO: Kool 2019, Ahmadian 2024 (arXiv 2402.14740)|
| moving_average | r_i - mean of all earlier rewards   | REINFORCE, as in Ahmadian 2024                   |
| raw            | r_i                                 | CS336 (2025) lecture 17, `rewards`               |
| best           | r_i if it is the group's largest, 0 | the same, `max`; several may be the largest      |
| centered       | r_i - mean of the group             | the same, `centered_rewards`                     |
| normalized     | the same over the group's std       | the same, `normalized_rewards`                   |
| positive       | 1 if r_i > 0, else 0                | Online RFT, DeepSeekMath (2402.03300) §A.1.3     |

`process_supervision` has the advantages that differ from token to token.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

Advantage = Callable[[torch.Tensor], torch.Tensor]  # (groups, G) -> (groups, G)
STD_GUARD = 1e-5  # the lecture's


def total(rewards: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The reward of each completion: the weighted sum over reward functions, (batch, functions) -> (batch,).

    NaN, where a function gives none, counts as 0.
    """
    return (rewards * weights.to(rewards.device)).nansum(dim=1)


def leave_one_out(rewards: torch.Tensor) -> torch.Tensor:
    r"""A_i = r_i - 1/(G-1) \sum_{j != i} r_j, which is G/(G-1) (r_i - mean)."""
    group_size = rewards.shape[1]
    others = (rewards.sum(dim=1, keepdim=True) - rewards) / (group_size - 1)
    return rewards - others


def raw(rewards: torch.Tensor) -> torch.Tensor:
    """A_i = r_i."""
    return rewards.clone()


def best(rewards: torch.Tensor) -> torch.Tensor:
    """A_i = r_i where r_i is the largest of its group, else 0."""
    return torch.where(rewards == rewards.amax(dim=1, keepdim=True), rewards, 0.0)


def centered(rewards: torch.Tensor) -> torch.Tensor:
    """A_i = r_i - mean."""
    return rewards - rewards.mean(dim=1, keepdim=True)


def normalized(rewards: torch.Tensor) -> torch.Tensor:
    """A_i = (r_i - mean) / (std + 1e-5), std with Bessel's correction."""
    return centered(rewards) / (rewards.std(dim=1, keepdim=True) + STD_GUARD)


def positive(rewards: torch.Tensor) -> torch.Tensor:
    """A_i = 1[r_i > 0], of the accuracy rewards alone."""
    return (rewards > 0).to(rewards.dtype)


# advantages that stage `grpo` adds to TRL's, by their names in a recipe
OF_GROUP: dict[str, Advantage] = {
    "leave_one_out": leave_one_out,
    "raw": raw,
    "best": best,
    "positive": positive,
}
# the deltas of stage `policy_gradient`, by the lecture's names
DELTAS: dict[str, Advantage] = {"raw": raw, "centered": centered, "normalized": normalized, "max": best}


@dataclass(frozen=True)
class MovingAverage:
    """The baseline of REINFORCE: b = the mean of all rewards of earlier rollouts, each counted once.

    The first rollout has none before it and takes its own mean. A round of dynamic sampling is a rollout.
    """

    total: float = 0.0
    count: int = 0

    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        """A_i = r_i - b."""
        return rewards - (self.total / self.count if self.count else rewards.double().mean().item())

    def after(self, rewards: torch.Tensor) -> "MovingAverage":
        """The average for the next rollout, with `rewards` among the earlier ones."""
        return MovingAverage(self.total + rewards.double().sum().item(), self.count + rewards.numel())
