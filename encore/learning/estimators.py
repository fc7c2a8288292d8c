"""Estimators turn a rollout's rewards into advantages; the equations are in `encore.objectives`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch
from accelerate.utils import gather_object
from torch import Tensor

from encore.learning.critic import LearningCritic
from encore.learning.measures import Measures
from encore.learning.minibatch import Minibatch
from encore.learning.policy import Policy
from encore.learning.resumable import Part
from encore.learning.scoring import Scores, problem_of
from encore.objectives import advantages, gae, process_supervision
from encore.objectives.kl import adapted_coefficient
from encore.recipe.grpo_args import PpoArgs
from encore.recipe.kinds.grpo import ACCURACY_ALONE
from encore.rewards.rules import text
from encore.rewards.step_rewards import Reader


class Estimator(Part, Protocol):
    """An object that makes the advantages of a round of completions."""

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        """Return `batch` with the advantages of its completions; before, they are 0."""


class Stateless:
    """An estimator whose advantages depend on no earlier round."""

    def state(self) -> None:
        """Return None: a checkpoint keeps nothing."""

    def restore(self, state: None) -> None:
        """Do nothing: there is no state."""


class Unrewarded(Stateless):
    """No advantages, because nothing learns from rewards."""

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        return batch


@dataclass(frozen=True)
class Group(Stateless):
    """The advantages of GRPO and of its variants in TRL, computed from the rewards of a group."""

    size: int
    scale: str
    normalize_first: bool

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        estimates, _ = advantages.of_groups(
            scores.rewards, scores.weights, self.size, self.scale, self.normalize_first
        )
        return replace(batch, advantages=estimates[scores.own])


@dataclass(frozen=True)
class Table(Stateless):
    """An advantage from the table `objectives.advantages.OF_GROUP`.

    `of_accuracy`: it is computed from the accuracy reward alone, not from the weighted sum of all rewards.
    """

    function: advantages.Advantage
    size: int
    of_accuracy: bool

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        rewards = scores.accuracy if self.of_accuracy else scores.totals
        return replace(batch, advantages=self.function(rewards.view(-1, self.size)).flatten()[scores.own])


class MovingAverage:
    """The baseline of REINFORCE: the mean of all earlier rewards."""

    def __init__(self) -> None:
        self.baseline = advantages.MovingAverage()

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        estimates = self.baseline.advantages(scores.totals)
        self.baseline = self.baseline.after(scores.totals)
        return replace(batch, advantages=estimates[scores.own])

    def state(self) -> tuple[float, int]:
        return self.baseline.total, self.baseline.count

    def restore(self, state: tuple[float, int]) -> None:
        self.baseline = advantages.MovingAverage(*state)


@dataclass(frozen=True)
class Process(Stateless):
    """Advantages of each token from the rewards of steps, which `read_steps` reads (DeepSeekMath §4.1.3)."""

    read_steps: Reader
    size: int

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        steps = gather_object(self.steps(scores))
        estimates = process_supervision.advantages(steps, self.size, batch.time)[scores.own]
        estimates = estimates.to(scores.rewards.device)
        return replace(batch, advantages=estimates if batch.own is None else _spread(estimates, batch.own))

    def steps(self, scores: Scores) -> list[process_supervision.Steps]:
        """Return the steps of each of this process's completions."""
        problems = [problem_of(row) for row in scores.rows]
        right = scores.accuracy[scores.own].tolist()
        return [
            self.read_steps(problem, text(said), tokens, is_right)
            for problem, said, tokens, is_right in zip(problems, scores.texts, scores.ids, right, strict=True)
        ]


def _spread(estimates: Tensor, policy_mask: Tensor) -> Tensor:
    """Return the estimates of the policy's own tokens, counted without a tool's, where these tokens stand.

    `estimates` and `policy_mask`: (B, T); a tool's tokens, where the mask is 0, get 0.
    """
    place = (policy_mask.cumsum(dim=1) - 1).clamp(min=0)  # (B, T) the number of own tokens before
    return estimates.gather(1, place) * policy_mask


class Gae:
    """Generalized advantage estimation of PPO, with the KL to the reference as part of the rewards."""

    def __init__(self, args: PpoArgs, policy: Policy, critic: LearningCritic, measures: Measures):
        self.args, self.policy, self.critic, self.measures = args, policy, critic, measures
        self.kl_coef: float = args.kl_coef

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        args, mask, summed = self.args, batch.loss_mask, self.summed
        assert batch.old is not None
        assert batch.ref is not None
        with torch.no_grad():
            values = self.critic.values(batch)
        log_ratio = (batch.old - batch.ref) * mask  # (B, T)
        totals = scores.totals[scores.own]  # (B,)
        ends = gae.end_scores(totals, scores.ended, args.missing_eos_penalty, args.missing_eos_score)
        rewards = gae.token_rewards(ends.to(log_ratio.dtype), log_ratio, mask, self.kl_coef)
        if args.whiten_rewards:
            rewards = gae.whiten(rewards, mask, shift_mean=False, summed=summed)
        estimates = gae.advantages(rewards, values, mask, args.gamma, args.lam)
        returns = estimates + values
        if args.whiten_advantages:
            estimates = gae.whiten(estimates, mask, summed=summed)
        sequence_kl = log_ratio.sum(dim=1)  # (B,) nats
        for row, nats in zip(scores.records, sequence_kl.tolist(), strict=True):
            row["kl"] = nats
        self.measure(ends, sequence_kl, gae.explained_variance(values, returns, mask))
        return replace(batch, advantages=estimates, values=values, returns=returns, ref=None)

    def summed(self, value: Tensor) -> Tensor:
        """Return the sum of a number over all processes."""
        return self.policy.trainer.accelerator.reduce(value, reduction="sum")

    def measure(self, scores: Tensor, sequence_kl: Tensor, explained: float) -> None:
        """Log the measures of a round and adapt the KL coefficient. `scores` and `sequence_kl`: (B,)."""
        log, gather = self.measures.add, self.policy.trainer.accelerator.gather
        all_scores, all_kl = gather(scores), gather(sequence_kl)
        mean_kl = all_kl.double().mean().item()
        log("kl", mean_kl)
        log("kl_coef", self.kl_coef)
        log("score", all_scores.double().mean().item())
        log("objective", (all_scores - self.kl_coef * all_kl).double().mean().item())
        self.measures.add_mean("explained_variance", torch.tensor(explained, device=scores.device))
        if self.args.kl_target is not None:
            self.kl_coef = adapted_coefficient(self.kl_coef, mean_kl, self.args.kl_target, self.args.kl_gain)

    def state(self) -> float:
        return self.kl_coef

    def restore(self, state: float) -> None:
        self.kl_coef = state


def of_stage(name: str | None, args: Any, read_steps: Callable | None, k: int | None = None) -> Estimator:
    """Return the estimator that a stage's key `advantage` names; `k` is its key `pass_k`.

    If the key is None, it is TRL's estimator by `args`, a GRPOConfig.
    """
    size = args.num_generations
    if name is None:
        return Group(size, args.scale_rewards, args.multi_objective_aggregation == "normalize_then_sum")
    if name == "moving_average":
        return MovingAverage()
    if name == "process":
        assert read_steps is not None
        return Process(read_steps, size)
    function = advantages.OF_GROUP[name] if k is None else partial(advantages.pass_at_k, k=k)
    return Table(function, size, of_accuracy=name in ACCURACY_ALONE)
