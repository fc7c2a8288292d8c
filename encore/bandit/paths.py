"""Two paths of policies, with measures: one along the exact gradient, one along the mean of an estimator.

The estimator is measured at the policies of the exact path. Arms that have the same seed, rewards, beta and
rate share this path. The other path belongs to the arm alone, because it follows the arm's estimator. A
rollout is drawn by the policy as it was before the updates on the rollout.
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

SUMMED_UP = ("gradient/", "kl/", "cut/", "drift")  # measures reported by their mean and their maximum
LEAST = 1e-30  # smallest number of which a logarithm is taken


@dataclass(frozen=True)
class Followed:
    """The measures of each step from 0 on, and the policy (P, V) at the end of the estimator's own path."""

    history: Sequence[Mapping[str, float]]
    policy: Tensor


def follow(bandit: Bandit, args: BanditArgs) -> Followed:
    """Follow both paths for as many steps of gradient ascent as `args` say."""
    history: list[Mapping[str, float]] = []
    exact = old_exact = followed = old_followed = bandit.start  # (P, V)
    for step in range(args.steps + 1):
        if step:
            uphill = gradient(bandit.objective, exact).view_as(exact)
            exact = exact + args.learning_rate * uphill
            mean = estimate(bandit, followed, old_followed, args).mean.view_as(followed)
            followed = followed + args.learning_rate * mean
        entry = {"step": step, **measures.of_policy(bandit, followed)}
        if step and step % args.inner_steps == 0:
            entry["drift"] = measures.drift(bandit, followed, old_followed)
            old_exact, old_followed = exact, followed
        history.append(entry | _of_estimator(bandit, exact, old_exact, args))
    return Followed(history, followed)


def _of_estimator(bandit: Bandit, policy: Tensor, old: Tensor, args: BanditArgs) -> Measures:
    """Measure an estimator at a policy (P, V), from what the policy `old` has drawn."""
    made = estimate(bandit, policy, old, args)
    measured = measures.of_gradient(bandit, policy, made)
    if args.kl != "none":
        measured |= measures.of_penalty(bandit, policy, args)
    if args.objective == "policy_gradient" and args.inner_steps > 1:
        measured |= measures.of_clip(bandit, policy, old, made, args)
    return measured


def summed_up(history: Sequence[Mapping[str, float]]) -> Measures:
    """Return `mean/x` and `max/x` of the measures of an estimator over all steps that have them.

    Variances and the drift also have `mean/log10_x` and `max/log10_x`, of their logarithms.
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
