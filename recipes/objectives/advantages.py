r"""Advantages that TRL has no argument for, as pure functions of the rewards of a rollout.

`rewards`: (groups * G,), the G completions of a prompt one after another; so is what is returned.

| name           | A_i                                 | source                                           |
|----------------|-------------------------------------|--------------------------------------------------|
| leave_one_out  | r_i - mean of the group's others    | RLOO: Kool 2019, Ahmadian 2024 (arXiv 2402.14740)|
| moving_average | r_i - mean of all earlier rewards   | REINFORCE, as in Ahmadian 2024                   |
| raw            | r_i                                 | CS336 (2025) lecture 17, `rewards`               |
| best           | r_i if it is the group's largest, 0 | the same, `max`: several may be the largest      |
| positive       | 1 if r_i > 0, else 0                | Online RFT, DeepSeekMath (2402.03300) §A.1.3     |

Process supervision, whose advantages differ from token to token, is in `process`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

Advantage = Callable[[torch.Tensor, int], torch.Tensor]  # rewards, G -> advantages
DELTAS = ("raw", "centered", "normalized", "max")


def leave_one_out(rewards: torch.Tensor, group_size: int) -> torch.Tensor:
    r"""A_i = r_i - 1/(G-1) \sum_{j != i} r_j, which is G/(G-1) (r_i - mean)."""
    groups = rewards.view(-1, group_size)  # (groups, G)
    others = (groups.sum(dim=1, keepdim=True) - groups) / (group_size - 1)
    return (groups - others).flatten()


def raw(rewards: torch.Tensor, group_size: int) -> torch.Tensor:
    """A_i = r_i."""
    return rewards.clone()


def best(rewards: torch.Tensor, group_size: int) -> torch.Tensor:
    """A_i = r_i where r_i is the largest of its group, else 0."""
    groups = rewards.view(-1, group_size)
    largest = groups == groups.amax(dim=1, keepdim=True)
    return (groups * largest).flatten()


def positive(rewards: torch.Tensor, group_size: int) -> torch.Tensor:
    """A_i = 1[r_i > 0]; `rewards` are those of accuracy alone."""
    return (rewards > 0).to(rewards.dtype)


OF_GROUP: dict[str, Advantage] = {
    function.__name__: function for function in (leave_one_out, raw, best, positive)
}


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
        """The average once `rewards` are earlier ones too."""
        return MovingAverage(self.total + rewards.double().sum().item(), self.count + rewards.numel())


STD_GUARD = 1e-5  # the lecture's


def deltas(rewards: torch.Tensor, mode: str) -> torch.Tensor:
    """What multiplies the gradient of each response, from `rewards`: (prompts, responses), as is the result.

    raw: R; centered: R - mean; normalized: (R - mean) / (std + 1e-5), std with Bessel's correction; max: R
    where it is the prompt's largest, else 0. Mean, std and largest are over the prompt's own responses.
    """
    if mode == "raw":
        return rewards
    if mode == "max":
        return torch.where(rewards == rewards.amax(dim=-1, keepdim=True), rewards, 0.0)
    centered = rewards - rewards.mean(dim=-1, keepdim=True)
    if mode == "centered":
        return centered
    if mode == "normalized":
        return centered / (rewards.std(dim=-1, keepdim=True) + STD_GUARD)
    raise ValueError(f"no delta {mode!r}")
