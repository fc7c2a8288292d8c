r"""Measures of an estimator at a policy: its error against the exact gradient, its penalty and its clip.

| name                  | what it is                                                                    |
|-----------------------|-------------------------------------------------------------------------------|
| gradient/gap          | the bias: length of mean - \nabla J, as a share of the length of \nabla J     |
| gradient/angle        | degrees between mean and \nabla J: 90 is useless, 180 the wrong way           |
| gradient/scale        | length of the mean along \nabla J, as a share of the length of \nabla J       |
| gradient/variance     | the variance per string that is drawn                                         |
| gradient/fine_tuning  | degrees between mean and the gradient of fine-tuning on the right strings     |
| kl/gap, kl/size       | the penalty's part of the mean: bias against -\beta \nabla KL, and length     |
| kl/held, kl/forward   | its bias against the token KL with fixed prefixes; the same for KL(pi_ref, pi) |
| kl/error, kl/variance | mean of the penalty's value minus the KL, in nats; variance of this value     |
| cut/good_above …      | share of the tokens of A > 0 and ratio > 1 + epsilon (…) without a gradient   |
| drift                 | KL(old, policy) at the end of the updates on one rollout, nats a string       |
| optimum/gradient      | length of the mean at the optimal policy pi*, where \nabla J is 0             |
"""

import math
from collections.abc import Callable

from torch import Tensor

from encore.bandit.estimators import Estimate, draws, estimate
from encore.bandit.problem import Bandit, gradient, held_prefixes
from encore.objectives.kl import kl
from encore.recipe.kinds.bandit import BanditArgs

Measures = dict[str, float]
NOTHING = 1e-14  # a gradient of at most this length is zero but for rounding
VALUE_OF = {"reward": "k1", "k1": "k1", "k2": "k2", "k3": "k3", "k3_weighted": "k3", "guide": "k1"}


def of_gradient(bandit: Bandit, policy: Tensor, made: Estimate) -> Measures:
    """Compare the mean of an estimator with the exact gradient of J at a policy (P, V)."""
    exact = gradient(bandit.objective, policy)
    measures = {
        "gradient/gap": _gap(made.mean, exact),
        "gradient/angle": angle(made.mean, exact),
        "gradient/scale": (made.mean @ exact / exact.square().sum()).item(),
        "gradient/variance": made.variance.item(),
    }
    if set(bandit.rewards.tolist()) == {0.0, 1.0}:
        measures["gradient/fine_tuning"] = angle(made.mean, gradient(_log_right(bandit, policy), policy))
    return measures


def _log_right(bandit: Bandit, drawn_by: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the function policy -> mean log-probability of right strings, as `drawn_by` draws them."""
    chances = bandit.strings.probabilities(drawn_by) * bandit.rewards
    return lambda logits: chances @ bandit.strings.log_probs(logits).sum(dim=1) / chances.sum()


def of_penalty(bandit: Bandit, policy: Tensor, args: BanditArgs) -> Measures:
    """Measure the KL penalty's part in the mean of the estimator at `policy`, and the penalty's value."""
    free = args.model_copy(update={"kl": "none"})
    penalised, plain = (estimate(bandit, policy, policy, each).mean for each in (args, free))
    part = penalised - plain
    exact = -bandit.beta * gradient(bandit.divergence, policy)
    held = -bandit.beta * held_prefixes(bandit, policy)
    forward = -bandit.beta * held_prefixes(bandit, policy, forward=True)
    strings, chances = bandit.strings, bandit.strings.probabilities(policy)
    logp, ref = strings.log_probs(policy), strings.log_probs(bandit.reference)
    values = kl(logp, ref, VALUE_OF[args.kl]).sum(dim=1)  # (S,)
    values = -values if args.kl == "guide" else values
    mean = chances @ values
    return {
        "kl/gap": _gap(part, exact),
        "kl/size": (part.norm() / exact.norm()).item(),
        "kl/held": _gap(part, held),
        "kl/forward": _gap(part, forward),
        "kl/error": (mean - bandit.divergence(policy)).item(),
        "kl/variance": (chances @ (values - mean).square()).item(),
    }


def of_optimum(bandit: Bandit, args: BanditArgs) -> float:
    """Return the length of the estimator's mean at the optimal policy that RLHF's closed form gives."""
    best = bandit.optimum()
    return estimate(bandit, best, best, args).mean.norm().item()


def of_clip(bandit: Bandit, policy: Tensor, old: Tensor, made: Estimate, args: BanditArgs) -> Measures:
    """Measure the share of tokens without a gradient, by the sign of A and the side of the clip range.

    A combination that no token has is left out.
    """
    strings, drawn = bandit.strings, draws(bandit, old, args)
    ratio = (strings.log_probs(policy) - strings.log_probs(old)).exp()[drawn.rows]  # (N, G, T)
    masses = drawn.chances[:, None, None] * strings.mask[drawn.rows]  # (N, G, T)
    signs = {"good": made.advantage > 0, "bad": made.advantage < 0}
    sides = {"above": ratio > 1 + args.epsilon, "below": ratio < 1 - args.epsilon}
    flat, measures = made.slopes == 0, Measures()
    for sign, of_sign in signs.items():
        for side, of_side in sides.items():
            cell = masses * (of_sign & of_side)
            if (total := cell.sum()) > 0:
                measures[f"cut/{sign}_{side}"] = ((cell * flat).sum() / total).item()
    return measures | {"clip_fraction": ((masses * flat).sum() / masses.sum()).item()}


def of_policy(bandit: Bandit, policy: Tensor) -> Measures:
    """Return a policy's reward, its KL and entropy per token, and how far J is below its optimum."""
    length = bandit.length(policy)
    measures = {
        "reward": bandit.reward(policy).item(),
        "kl": (bandit.divergence(policy) / length).item(),
        "entropy": (bandit.entropy(policy) / length).item(),
    }
    if bandit.beta:
        best = bandit.objective(bandit.optimum())
        measures["regret"] = (best - bandit.objective(policy)).item()
    return measures


def drift(bandit: Bandit, policy: Tensor, old: Tensor) -> float:
    """Return KL(old || policy) of whole strings, in nats: how far the updates on one rollout have gone."""
    log_ratio = bandit.strings.log_probs(old) - bandit.strings.log_probs(policy)
    return (bandit.strings.probabilities(old) @ log_ratio.sum(dim=1)).item()


def angle(a: Tensor, b: Tensor) -> float:
    """Return the angle between two vectors in degrees, which is exact for small angles too.

    The result is NaN if a vector is zero.
    """
    if min(a.norm(), b.norm()) < NOTHING:
        return math.nan
    a, b = a / a.norm(), b / b.norm()
    return math.degrees(2 * math.atan2((a - b).norm().item(), (a + b).norm().item()))


def _gap(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()
