r"""Estimators of the gradient of J, with their exact mean and variance: every possible draw is listed.

A draw is a group of G strings. Its estimate is minus the gradient of the suite's own loss of the group. With
c_{i,t} the derivative of the loss by log \pi(o_{i,t}), which automatic differentiation gives,

    g(group) = -\sum_{i,t} c_{i,t} \nabla log \pi(o_{i,t})        mean = \sum P(group) g(group)

    variance = G ( \sum P(group) |g(group)|^2 - |mean|^2 )        per string that is drawn

| objective       | a group               | loss                                         | its code          |
|-----------------|-----------------------|----------------------------------------------|-------------------|
| policy_gradient | G strings from pi_old | PPO's clip (PPO Eq. 7), and a KL penalty     | objectives.grpo   |
| fine_tuning     | one right string      | -log pi                                      | here              |
| dpo             | a labelled pair       | -log sigmoid of implicit rewards (DPO Eq. 7) | objectives.losses |

For dpo the reference draws both strings, and Bradley and Terry's model labels them by their true rewards.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from encore.bandit.problem import Bandit
from encore.objectives import advantages, gae, grpo
from encore.objectives.kl import ESTIMATORS, kl_penalty
from encore.objectives.losses import k_wise
from encore.recipe.grpo_args import GrpoArgs
from encore.recipe.kinds.bandit import BanditArgs


@dataclass(frozen=True)
class Draws:
    """All N groups that can be drawn, of G strings each."""

    rows: Tensor  # (N, G) of int64: numbers of the strings
    chances: Tensor  # (N,) the probability of each group


@dataclass(frozen=True)
class Estimate:
    """The exact mean and variance of an estimator, with the slopes and advantages of each group."""

    mean: Tensor  # (P V,)
    variance: Tensor  # () the trace, per string that is drawn
    slopes: Tensor  # (N, G, T) the derivative of the loss by the token's log-probability
    advantage: Tensor  # (N, G, 1) or (N, G, T)


def draws(bandit: Bandit, old: Tensor, args: BanditArgs) -> Draws:
    """List the groups that the policy `old` (P, V) may draw; for dpo, the labelled pairs."""
    strings = bandit.strings
    if args.objective == "dpo":
        return _pairs(bandit)
    chances = strings.probabilities(old)
    if args.objective == "fine_tuning":
        chances = chances * bandit.rewards / (chances @ bandit.rewards)
    every = torch.arange(len(chances))
    rows = torch.cartesian_prod(*[every] * args.group).view(-1, args.group)
    return Draws(rows, chances[rows].prod(dim=1))


def _pairs(bandit: Bandit) -> Draws:
    """List the pairs (better, worse), with the probability that both strings are drawn and labelled so."""
    chances = bandit.strings.probabilities(bandit.reference)
    every = torch.arange(len(chances))
    rows = torch.cartesian_prod(every, every)  # (N, 2)
    labelled = torch.sigmoid(bandit.rewards[rows[:, 0]] - bandit.rewards[rows[:, 1]])
    return Draws(rows, 2 * labelled * chances[rows].prod(dim=1))


def estimate(bandit: Bandit, policy: Tensor, old: Tensor, args: BanditArgs) -> Estimate:
    """Return the estimator's mean and variance at a policy (P, V). The policy `old` makes the draws."""
    strings, drawn = bandit.strings, draws(bandit, old, args)
    advantage = _advantage(bandit, old, drawn, args)
    leaf = strings.log_probs(policy)[drawn.rows].requires_grad_()  # (N, G, T)
    (slopes,) = torch.autograd.grad(_summed_loss(bandit, leaf, old, drawn, advantage, args), leaf)
    by_string = torch.zeros(len(drawn.rows), *strings.mask.shape, dtype=torch.float64)  # (N, S, T)
    by_string = by_string.index_put((torch.arange(len(drawn.rows))[:, None], drawn.rows), slopes, True)
    gradients = -by_string.flatten(1) @ strings.scores(policy).flatten(0, 1)  # (N, P V)
    mean = drawn.chances @ gradients
    variance = drawn.chances @ gradients.square().sum(dim=1) - mean.square().sum()
    return Estimate(mean, drawn.rows.shape[1] * variance.clamp(min=0), slopes, advantage)


def _summed_loss(
    bandit: Bandit, logp: Tensor, old: Tensor, drawn: Draws, advantage: Tensor, args: BanditArgs
) -> Tensor:
    """Return the sum of the losses of all groups, (), with a gradient in `logp` (N, G, T)."""
    strings, groups = bandit.strings, len(drawn.rows)
    flat, rows = logp.flatten(0, 1), drawn.rows.flatten()  # (N G, T), (N G,)
    mask, ref = strings.mask[rows], strings.log_probs(bandit.reference)[rows]
    if args.objective == "fine_tuning":
        return -(flat * mask).sum()
    if args.objective == "dpo":
        implicit = args.beta * ((flat - ref) * mask).sum(dim=1)  # (2 N,) in the order better, worse, better …
        places = torch.arange(2 * groups).view(-1, 2)
        pairs = {"better": places[:, 0], "worse": places[:, 1], "weight": torch.ones(groups).double()}
        return k_wise(implicit, pairs)
    by_k3 = args.kl in ("k3", "k3_weighted")
    batch = grpo.Batch(
        logp=flat,
        old=flat.detach() if args.old == "current" else strings.log_probs(old)[rows],
        advantage=advantage.flatten(0, 1),
        mask=mask,
        cap=mask.shape[1],
        step_tokens=mask.sum(),
        ref=ref if by_k3 else None,
    )
    total = grpo.loss(batch, _options(args), "token").loss
    if args.kl in ESTIMATORS and not by_k3:
        total = total + args.beta * kl_penalty(flat, ref, args.kl, mask)
    elif args.kl == "guide":
        total = total + args.beta * ((ref - flat) * mask).sum(dim=1).mean()
    return total * groups  # turns the mean over all groups into the sum of the groups' losses


def _options(args: BanditArgs) -> GrpoArgs:
    """Return the options of `grpo.loss`: it sums over the tokens of a string and averages over strings."""
    by_k3 = args.kl in ("k3", "k3_weighted")
    return GrpoArgs(
        loss_type="luspo",
        epsilon=args.epsilon,
        beta=args.beta if by_k3 else 0.0,
        use_bias_correction_kl=args.kl == "k3_weighted",
    )


def _advantage(bandit: Bandit, old: Tensor, drawn: Draws, args: BanditArgs) -> Tensor:
    """Return the advantages: (N, G, 1) of strings, or (N, G, T) of tokens."""
    rewards = bandit.rewards[drawn.rows]  # (N, G)
    if args.objective != "policy_gradient" or args.advantage == "raw":
        return advantages.raw(rewards)[..., None]
    if args.advantage == "gae":
        token_rewards = bandit.token_rewards(old, args.kl == "reward")  # (S, T)
        values = bandit.values(old, token_rewards)
        return gae.advantages(token_rewards, values, bandit.strings.mask, 1.0, args.lam)[drawn.rows]
    if args.advantage in ("mean", "optimal"):
        return (rewards - _baseline(bandit, old, args.advantage == "optimal"))[..., None]
    if args.advantage == "normalized":
        each, size = torch.ones(1, dtype=torch.float64), rewards.shape[1]
        return advantages.of_groups(rewards.view(-1, 1), each, size)[0].view_as(rewards)[..., None]
    compared = {"leave_one_out": advantages.leave_one_out, "centered": advantages.centered}
    return compared[args.advantage](rewards)[..., None]


def _baseline(bandit: Bandit, old: Tensor, optimal: bool) -> Tensor:
    r"""Return the expected reward of `old` or, if `optimal`, the baseline with the least variance: ().

    b* = E[ |\nabla log \pi|^2 r ] / E[ |\nabla log \pi|^2 ]        (Greensmith et al. 2004, §4)
    """
    weights = bandit.strings.probabilities(old)  # (S,)
    if optimal:
        weights = weights * bandit.strings.scores(old).sum(dim=1).square().sum(dim=1)
    return weights @ bandit.rewards / weights.sum()
