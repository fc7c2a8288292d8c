r"""GRPO, and every objective that this suite compares with it: from log-probabilities to the loss.

A rollout has G completions of each prompt, sampled by the policy \pi_old. An update lowers the loss

    L = mean over the tokens ( surrogate(w, A) + \beta KL(\pi || \pi_ref) )

with the importance ratio w = \pi(o_t) / \pi_old(o_t) and the advantage A of `objectives.advantages`. What a
recipe chooses are the ratio, the surrogate and the mean, all functions of this file:

| objective       | importance_ratio | surrogate | mean           | loss_type | arXiv      |
|-----------------|------------------|-----------|----------------|-----------|------------|
| GRPO            | token            | clipped   | of_completions | grpo      | 2402.03300 |
| DAPO            | token            | clipped   | of_step        | dapo      | 2503.14476 |
| BNPO            | token            | clipped   | of_micro_batch | bnpo      | (TRL)      |
| Dr. GRPO        | token            | clipped   | of_caps        | dr_grpo   | 2503.20783 |
| GSPO            | sequence         | clipped   | of_completions | grpo      | 2507.18071 |
| GSPO-token      | sequence_token   | clipped   | of_completions | grpo      | 2507.18071 |
| LUSPO           | sequence         | clipped   | of_sums        | luspo     | 2602.05261 |
| CISPO           | token            | truncated | of_step        | cispo     | 2506.13585 |
| SAPO            | token            | soft      | of_completions | sapo      | 2511.20347 |
| REINFORCE, RLOO | none             | clipped   | of_completions | grpo      | 2402.14740 |

Below, sg[.] stops the gradient, and `on_policy` is a factor of the surrogate. Values and gradients are those
of TRL's GRPOTrainer wherever TRL has the objective; `tests/conformance` compares with float64 references.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from encore.objectives import covariance
from encore.objectives.averages import completion_means
from encore.objectives.clip import cut_by_clip
from encore.recipe.covariance import ClipCov, KlCov
from encore.recipe.grpo_args import GrpoArgs


@dataclass(frozen=True)
class Batch:
    """A micro-batch of B completions of at most T tokens; log-probabilities and entropies are in nats."""

    logp: Tensor  # (B, T) log pi(o_t), with a gradient
    old: Tensor  # (B, T) log pi_old(o_t) of the policy that sampled
    advantage: Tensor  # (B, 1), one for each completion, or (B, T), one for each token
    mask: Tensor  # (B, T) 1 at the tokens in the loss
    cap: int  # tokens that a completion may have
    step_tokens: Tensor  # () tokens in the loss of the optimizer step, divided by the number of processes
    micro_batches: int = 1  # number of micro-batches in the optimizer step
    ref: Tensor | None = None  # (B, T) log pi_ref(o_t); None if beta is 0
    sampled: Tensor | None = None  # (B, T) the sampler's log-probabilities, NaN where it reports none
    correction: Tensor | None = None  # (B, T) or (B, 1) pi_old / pi_sampler, clipped; None without correction
    # (B, T) 1 at the tokens of the highest or the lowest entropy, which alone learn (2506.01939); None: all
    learning: Tensor | None = None
    entropy: Tensor | None = None  # (B, T) entropy of the next token, with a gradient; None without a bonus
    entropy_coef: float = 0.0  # weight of the entropy bonus
    by_length: bool = False  # whether the step's micro-batches have completions of like length

    @property
    def counted(self) -> Tensor:
        """The tokens in the loss that learn, (B, T), over which the entropy bonus is a mean."""
        return self.mask if self.learning is None else self.mask * self.learning


class Terms(NamedTuple):
    """The loss of a micro-batch, and the tensors that are worth measuring."""

    loss: Tensor  # ()
    policy: Tensor  # () the loss without the entropy bonus
    ratio: Tensor  # (B, T), or (B, 1) at the level `sequence`
    cut: Tensor  # (B, T) or (B, 1) of bool: where the clip has cut the gradient
    kl: Tensor | None  # (B, T) KL estimate at each token
    held: Tensor | None = None  # (B, T) of bool: the tokens that Clip-Cov or KL-Cov holds back


# -- the importance ratio ------------------------------------------------------------------------------------


def importance_ratio(batch: Batch, level: str) -> Tensor:
    r"""Return w, the ratio of the policy to the sampling policy: (B, T), or (B, 1) at the level `sequence`.

    At the level `none` w has the value 1 and the gradient of log \pi. At `sequence_token` (GSPO Eq. 14) w has
    the value of the sequence's ratio s, and the gradient s grad log \pi at each token.
    """
    logp = batch.logp
    if level == "none":
        return (logp - logp.detach()).exp()
    log_ratio = logp - batch.old  # (B, T)
    if level == "token":
        return log_ratio.exp()
    log_s = completion_means(log_ratio, batch.mask)[:, None]  # (B, 1), GSPO Eq. 7
    if level == "sequence":
        return log_s.exp()
    if level == "sequence_token":
        return (logp - (logp.detach() - log_s.detach())).exp()
    raise ValueError(f"no importance ratio {level!r}")


# -- the surrogate: what a token adds to the loss, (B, T) or (B, 1) ------------------------------------------


def clip_range(args: GrpoArgs) -> tuple[float, float]:
    """Return how far the ratio may be below and above 1: `epsilon`, and `epsilon_high` if it is set."""
    return args.epsilon, args.epsilon if args.epsilon_high is None else args.epsilon_high


def clipped(w: Tensor, batch: Batch, args: GrpoArgs) -> Tensor:
    """Return -min(w A, clip(w, 1 - low, 1 + high) A), with w at most `delta` if it is set (PPO Eq. 7)."""
    low, high = clip_range(args)
    bounded = w if args.delta is None else w.clamp(max=args.delta)
    return -torch.min(bounded * batch.advantage, w.clamp(1 - low, 1 + high) * batch.advantage)


def truncated(w: Tensor, batch: Batch, args: GrpoArgs) -> Tensor:
    r"""Return -sg[min(w, high)] A log \pi (CISPO Eq. 4): the weight is capped, and no gradient is lost."""
    return -w.clamp(max=clip_range(args)[1]).detach() * batch.advantage * batch.logp


def soft(w: Tensor, batch: Batch, args: GrpoArgs) -> Tensor:
    """Return -4/t sigmoid(t (w - 1)) A, with a temperature t for each sign of A (SAPO)."""
    t = torch.where(batch.advantage > 0, args.sapo_temperature_pos, args.sapo_temperature_neg)
    return -(torch.sigmoid(t * (w - 1)) * 4 / t) * batch.advantage


# -- the mean over tokens: the part, (), that a micro-batch adds to the mean of an optimizer step ------------


def of_completions(terms: Tensor, batch: Batch) -> Tensor:
    """Return 1/B sum_i 1/|o_i| sum_t terms: completions have the same weight (DeepSeekMath Eq. 3)."""
    return completion_means(terms, batch.mask).mean() / batch.micro_batches


def of_micro_batch(terms: Tensor, batch: Batch) -> Tensor:
    """Return the mean over the tokens of the micro-batch, divided by the number of micro-batches."""
    return (terms * batch.mask).sum() / batch.mask.sum().clamp(min=1) / batch.micro_batches


def of_step(terms: Tensor, batch: Batch) -> Tensor:
    """Return the sum over the tokens, divided by the tokens of the optimizer step (DAPO Eq. 8).

    All tokens have the same weight.
    """
    return (terms * batch.mask).sum() / batch.step_tokens.clamp(min=1)


def of_caps(terms: Tensor, batch: Batch) -> Tensor:
    """Return 1/(B cap) sum_i sum_t terms: no length that the policy chose divides them (Dr. GRPO)."""
    return (terms * batch.mask).sum() / (len(terms) * batch.cap) / batch.micro_batches


def of_sums(terms: Tensor, batch: Batch) -> Tensor:
    """Return the mean over sequences of the sum of their `terms`, 1/B sum_i sum_t (LUSPO)."""
    return (terms * batch.mask).sum(dim=1).mean() / batch.micro_batches


Surrogate = Callable[[Tensor, Batch, GrpoArgs], Tensor]
Mean = Callable[[Tensor, Batch], Tensor]
LOSSES: dict[str, tuple[Surrogate, Mean]] = {
    "grpo": (clipped, of_completions),
    "bnpo": (clipped, of_micro_batch),
    "dapo": (clipped, of_step),
    "dr_grpo": (clipped, of_caps),
    "luspo": (clipped, of_sums),
    "cispo": (truncated, of_step),
    "sapo": (soft, of_completions),
}


# -- the loss ------------------------------------------------------------------------------------------------


def k3(logp: Tensor, ref: Tensor) -> Tensor:
    """Return k3, an estimate of KL(pi || pi_ref) at each token that is never negative, (B, T).

    It is Eq. 4 of DeepSeekMath.
    """
    return (ref - logp).exp() - (ref - logp) - 1


def on_policy(batch: Batch, threshold: float) -> Tensor:
    """Return 0 for each completion that is bad and has become unlikely, 1 for the others: (B, 1).

    Bad is A < 0; unlikely is a fall by more than `threshold` nats a token (DeepSeek-V3.2, arXiv 2512.02556).
    """
    sampled = batch.old if batch.sampled is None else batch.sampled
    gap = (sampled - batch.logp.detach()).nan_to_num(nan=0.0)
    likely = completion_means(gap, batch.mask)[:, None] <= threshold
    return ((batch.advantage >= 0) | likely).to(batch.mask.dtype)


def held_back(terms: Tensor, cut: Tensor, batch: Batch, limit: ClipCov | KlCov) -> tuple[Tensor, Tensor]:
    """Return the terms under Clip-Cov or KL-Cov, and the tokens that are held back; both (B, T).

    Clip-Cov removes the terms of these tokens; KL-Cov adds weight |log pi - log pi_old| to them.
    """
    values = covariance.covariances(batch.logp, batch.advantage, batch.mask)
    if isinstance(limit, ClipCov):
        held = covariance.clip_cov(values, batch.mask, cut, limit)
        return terms * ~held, held
    held = covariance.kl_cov(values, batch.mask, limit)
    return terms + limit.weight * held * (batch.logp - batch.old).abs(), held


def loss(batch: Batch, args: GrpoArgs, level: str, limit: ClipCov | KlCov | None = None) -> Terms:
    """Return the loss and terms of a micro-batch; the losses of an optimizer step add up to the step's."""
    surrogate, mean = LOSSES[args.loss_type]
    w = importance_ratio(batch, level)  # (B, T) or (B, 1)
    terms = surrogate(w, batch, args)
    if surrogate is clipped and level != "none":
        cut = cut_by_clip(w, batch.advantage, *clip_range(args), args.delta)
    else:
        cut = torch.zeros_like(w, dtype=torch.bool)
    held = None
    if limit is not None:
        terms, held = held_back(terms, cut, batch, limit)
    if args.off_policy_mask_threshold is not None:
        terms = terms * on_policy(batch, args.off_policy_mask_threshold)
    for factor in (batch.learning, batch.correction):
        terms = terms if factor is None else terms * factor
    kl = None if batch.ref is None else k3(batch.logp, batch.ref)
    if kl is not None:
        kl = kl * w if args.use_bias_correction_kl else kl
        terms = terms + args.beta * kl
    total = policy = mean(terms, batch)
    if batch.entropy is not None:
        # over micro-batches of like length TRL's mean would give the tokens of short completions more weight
        mean_of_tokens = of_step if batch.by_length else of_micro_batch
        bonus = mean_of_tokens(batch.entropy, replace(batch, mask=batch.counted))
        total = policy - batch.entropy_coef * bonus
    return Terms(total, policy.detach(), w.detach(), cut, kl, held)
