r"""Advantages, as pure functions of the rewards of a rollout.

`total` weights and adds the rewards of several functions. `of_groups` computes the advantages of GRPO and of
the variants in TRL. Each function of the table takes rewards (groups, G), with a row for the G completions of
a prompt, and returns the same shape.

| name           | A_i                                     | source                                          |
|----------------|-----------------------------------------|-------------------------------------------------|
| leave_one_out  | r_i - mean of the group's other rewards | RLOO: Kool 2019, Ahmadian 2024 (2402.14740)     |
| moving_average | r_i - mean of all earlier rewards       | REINFORCE, as in Ahmadian 2024                  |
| raw            | r_i                                     | CS336 (2025) lecture 17, `rewards`              |
| best           | r_i if it is the group's largest, 0     | the same, `max`; several may be the largest     |
| centered       | r_i - mean of the group                 | the same, `centered_rewards`                    |
| normalized     | (r_i - mean) / std of the group         | the same, `normalized_rewards`                  |
| positive       | 1 if r_i > 0, else 0                    | Online RFT, DeepSeekMath (2402.03300) §A.1.3    |
| negative       | -1 if r_i <= 0, else 0                  | NSR, Zhu et al. (arXiv 2506.01347)              |
| weighted       | 0.1 if r_i > 0, else -1                 | W-REINFORCE, the same                           |
| above_mean     | GRPO's advantage, or 0 if it is below 0 | positive only, Carrino et al. (arXiv 2603.18756)|
| pass_at_k      | pass@k of its choices less their mean   | Chen et al. (arXiv 2508.10751)                  |

`process_supervision` computes advantages that differ from token to token.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, sqrt

import torch

Advantage = Callable[[torch.Tensor], torch.Tensor]  # (groups, G) -> (groups, G)
STD_GUARD = 1e-5  # added to the standard deviation, as in CS336, lecture 17
GUARD = 1e-4  # added to the standard deviation, as in TRL
WEIGHT_OF_RIGHT = 0.1  # weight of right responses in W-REINFORCE


def total(rewards: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted sum of each completion's rewards, (batch, functions) -> (batch,).

    A reward of NaN counts as 0, because it means that the function gave the completion no reward.
    """
    return (rewards * weights.to(rewards.device)).nansum(dim=1)


def of_groups(
    rewards: torch.Tensor,
    weights: torch.Tensor,
    size: int,
    scale: str = "group",
    normalize_first: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the advantages of completions and the standard deviations of their rewards, both (batch,).

        A_i = (r_i - mean of the group) / (std + 1e-4)          (DeepSeekMath §4.1.2)

    `rewards` has the shape (batch, functions). Groups of `size` completions follow each other. A reward is
    NaN if the function gives none; a completion without any reward has the advantage 0.

    `scale` says over what the std is taken, the `group` or the `batch`; `none` does not divide (Dr. GRPO).
    With `normalize_first` the rewards of each function are normalised in their group and added up, and the
    sums are normalised over the batch (GDPO, arXiv 2601.05242).
    """
    unscored = rewards.isnan().all(dim=1)
    if normalize_first:
        grouped = rewards.view(-1, size, rewards.shape[1])  # (groups, G, functions)
        each = (grouped - grouped.nanmean(dim=1, keepdim=True)) / (std_of_known(grouped, 1) + GUARD)
        sums = total(each.view(-1, rewards.shape[1]), weights).masked_fill(unscored, torch.nan)
        std = std_of_known(sums, 0).expand_as(sums)
        advantages = (sums - sums.nanmean()) / (std + GUARD)
    else:
        sums = total(rewards, weights).masked_fill(unscored, torch.nan)
        groups = sums.view(-1, size)
        if scale == "batch":
            std = std_of_known(sums, 0).expand_as(sums)
        else:
            std = std_of_known(groups, 1).expand_as(groups).flatten()
        advantages = (groups - groups.nanmean(dim=1, keepdim=True)).flatten()
        if scale != "none":
            advantages = advantages / (std + GUARD)
    return advantages.nan_to_num(nan=0.0), std


def std_of_known(values: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the standard deviation along `dim`, which is kept with size 1; NaN are ignored.

    It has Bessel's correction. It is 0 for a group of size 1, and NaN if only one number of a larger group is
    known.
    """
    if values.shape[dim] == 1:
        return torch.zeros_like(values)
    variance = (values - values.nanmean(dim=dim, keepdim=True)).square().nanmean(dim=dim, keepdim=True)
    count = (~values.isnan()).sum(dim=dim, keepdim=True)
    return (variance * (count / (count - 1)).masked_fill(count < 2, torch.nan)).sqrt()


def leave_one_out(rewards: torch.Tensor) -> torch.Tensor:
    r"""Return A_i = r_i - 1/(G-1) \sum_{j != i} r_j, which is G/(G-1) (r_i - mean)."""
    group_size = rewards.shape[1]
    others = (rewards.sum(dim=1, keepdim=True) - rewards) / (group_size - 1)
    return rewards - others


def raw(rewards: torch.Tensor) -> torch.Tensor:
    """Return A_i = r_i."""
    return rewards.clone()


def best(rewards: torch.Tensor) -> torch.Tensor:
    """Return A_i = r_i if r_i is the largest reward of its group, else 0."""
    return torch.where(rewards == rewards.amax(dim=1, keepdim=True), rewards, 0.0)


def centered(rewards: torch.Tensor) -> torch.Tensor:
    """Return A_i = r_i - mean of the group."""
    return rewards - rewards.mean(dim=1, keepdim=True)


def normalized(rewards: torch.Tensor) -> torch.Tensor:
    """Return A_i = (r_i - mean) / (std + 1e-5), with Bessel's correction in the std."""
    return centered(rewards) / (rewards.std(dim=1, keepdim=True) + STD_GUARD)


def positive(rewards: torch.Tensor) -> torch.Tensor:
    """Return A_i = 1 if r_i > 0, else 0; it is meant for accuracy rewards alone."""
    return (rewards > 0).to(rewards.dtype)


def negative(rewards: torch.Tensor) -> torch.Tensor:
    """Return A_i = -1 if r_i <= 0, else 0; it is meant for accuracy rewards alone."""
    return positive(rewards) - 1


def weighted(rewards: torch.Tensor) -> torch.Tensor:
    """Return A_i = WEIGHT_OF_RIGHT if r_i > 0, else -1; it is meant for accuracy rewards alone."""
    return WEIGHT_OF_RIGHT * positive(rewards) + negative(rewards)


def pass_at_k(rewards: torch.Tensor, k: int) -> torch.Tensor:
    """Return the advantages of the objective pass@k, from accuracy rewards alone.

    The reward of k responses is 1 if one of them is right. Over all choices of k of the G responses of a
    prompt, W of them wrong, it has the mean M = 1 - C(W, k) / C(G, k) and the standard deviation
    sqrt(M (1 - M)). A response has the mean reward of the choices that contain it: 1 if it is right, else
    1 - C(W - 1, k - 1) / C(G - 1, k - 1). Its advantage is this reward less M, divided by the standard
    deviation; 0 if the latter is 0.
    """
    size = rewards.shape[1]
    right = rewards > 0
    of_right, of_wrong = rewards.new_zeros(len(rewards), 1), rewards.new_zeros(len(rewards), 1)
    for row, wrong in enumerate((~right).sum(dim=1).tolist()):
        missed = comb(wrong, k) / comb(size, k)  # 1 - M
        if 0 < missed < 1:
            std = sqrt(missed * (1 - missed))
            of_right[row] = missed / std
            of_wrong[row] = (missed - comb(wrong - 1, k - 1) / comb(size - 1, k - 1)) / std
    return torch.where(right, of_right, of_wrong)


def above_mean(rewards: torch.Tensor) -> torch.Tensor:
    """Return A_i = max(0, (r_i - mean) / (std + 1e-4)), so that no response is made less likely."""
    advantages, _ = of_groups(rewards.reshape(-1, 1), rewards.new_ones(1), rewards.shape[1])
    return advantages.clamp_min(0.0).view_as(rewards)


# advantages that stage `grpo` adds to TRL's, by their names in a recipe
OF_GROUP: dict[str, Advantage] = {
    "leave_one_out": leave_one_out,
    "raw": raw,
    "best": best,
    "positive": positive,
    "negative": negative,
    "weighted": weighted,
    "above_mean": above_mean,
}
# the deltas of stage `policy_gradient`, by their names in CS336, lecture 17
DELTAS: dict[str, Advantage] = {"raw": raw, "centered": centered, "normalized": normalized, "max": best}


@dataclass(frozen=True)
class MovingAverage:
    """The baseline b of REINFORCE: the mean of all rewards of earlier rollouts, each counted once.

    The first rollout has no earlier rewards and takes its own mean. A round of dynamic sampling counts as a
    rollout.
    """

    total: float = 0.0
    count: int = 0

    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        """Return A_i = r_i - b, in the shape of `rewards`."""
        return rewards - (self.total / self.count if self.count else rewards.double().mean().item())

    def after(self, rewards: torch.Tensor) -> "MovingAverage":
        """Return the average for the next rollout, which includes these `rewards`."""
        return MovingAverage(self.total + rewards.double().sum().item(), self.count + rewards.numel())
