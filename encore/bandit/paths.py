"""Two paths of policies: along the exact gradient, and along the mean of an estimator, with what is measured.

The estimator is measured at the policies of the exact path, which the arms of a seed share that have the same
rewards, beta and rate. The other path is the arm's own: what comes of following the estimator. A rollout is
drawn by the policy before its updates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from encore.bandit import measures
from encore.bandit.estimators import estimate
from encore.bandit.measures import Measures
from encore.bandit.problem import Bandit, gradient
from encore.recipe.kinds.bandit import BanditArgs

SUMMED_UP = ("gradient/", "kl/", "cut/", "drift")  # measures of which the mean and the largest are told
LEAST = 1e-30  # a logarithm is taken of this at least


@dataclass(frozen=True)
class Followed:
    """What was measured at each step from 0 on, and the policy (P, V) at the end of the arm's own path."""

    history: Sequence[Mapping[str, float]]
    policy: Tensor


def follow(bandit: Bandit, args: BanditArgs) -> Followed:
    """Follow both paths for so many steps of gradient ascent."""
    history: list[Mapping[str, float]] = []
    exact = old_exact = own = old_own = bandit.start  # (P, V)
    for step in range(args.steps + 1):
        if step:
            uphill = gradient(bandit.objective, exact).view_as(exact)
            exact = exact + args.learning_rate * uphill
            mean = estimate(bandit, own, old_own, args).mean.view_as(own)
            own = own + args.learning_rate * mean
        entry = {"step": step, **measures.of_policy(bandit, own)}
        if step and step % args.inner_steps == 0:
            entry["drift"] = measures.drift(bandit, own, old_own)
            old_exact, old_own = exact, own
        history.append(entry | _of_estimator(bandit, exact, old_exact, args))
    return Followed(history, own)


def _of_estimator(bandit: Bandit, policy: Tensor, old: Tensor, args: BanditArgs) -> Measures:
    """Measure an estimator at a policy (P, V), from what the policy `old` has drawn."""
    made = estimate(bandit, policy, old, args)
    found = measures.of_gradient(bandit, policy, made)
    if args.kl != "none":
        found |= measures.of_penalty(bandit, policy, args)
    if args.objective == "policy_gradient" and args.inner_steps > 1:
        found |= measures.of_clip(bandit, policy, old, made, args)
    return found


def summed_up(history: Sequence[Mapping[str, float]]) -> Measures:
    """Return `mean/x` and `max/x` of the measures of an estimator over all steps that have them.

    Of variances and of the drift also `mean/log10_x` and `max/log10_x`, of the logarithm.
    """
    values: dict[str, list[float]] = {}
    for entry in history:
        for name, value in entry.items():
            if name.startswith(SUMMED_UP) and math.isfinite(value):
                values.setdefault(name, []).append(value)
    summary = {f"mean/{name}": sum(column) / len(column) for name, column in values.items()}
    summary |= {f"max/{name}": max(column) for name, column in values.items()}
    for name, column in values.items():
        if name.endswith(("/variance", "drift")):
            logs = [math.log10(max(value, LEAST)) for value in column]
            summary[f"mean/log10_{name}"] = sum(logs) / len(logs)
            summary[f"max/log10_{name}"] = max(logs)
    return summary
