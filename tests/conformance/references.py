"""The objectives as their papers write them, in float64; nothing here knows TRL.

An objective J is to be maximised; the loss is -J. It is a function of the completions of one optimizer step,
each with its log-probabilities under the current policy (differentiable), under the policy that sampled it
and under the reference model. Advantages are functions of the rewards of whole groups.

Numbers of equations are those of
    REINFORCE, RLOO   Ahmadian et al. 2024, arXiv 2402.14740
    GRPO, Online RFT  DeepSeekMath, arXiv 2402.03300
    DAPO              arXiv 2503.14476
    GSPO              arXiv 2507.18071
    Dr. GRPO          arXiv 2503.20783
    CISPO             MiniMax-M1, arXiv 2506.13585
    best              "max" of CS336 (spring 2025), lecture 17
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray


@dataclass(frozen=True)
class Sample:
    """A completion of T tokens."""

    logp: Tensor  # (T,) log pi(o_t), with a gradient
    old: Tensor  # (T,) log pi_old(o_t)
    reference: Tensor | None  # (T,) log pi_ref(o_t)
    advantage: Tensor  # () or (T,)
    masked: bool = False  # overlong filtering: its loss is not counted
    group: int = 0
    entropy: Tensor | None = None  # (T,) of the distribution of each token

    def __len__(self) -> int:
        return 0 if self.masked else len(self.logp)


# -- advantages ---------------------------------------------------------------------------------------------
# r: (groups, G) rewards; the result has the same shape


def raw(r: Array) -> Array:
    return r


def centered(r: Array) -> Array:
    """r_i - mean(r): Dr. GRPO."""
    return r - r.mean(axis=1, keepdims=True)


def normalized(r: Array, ddof: int = 0, guard: float = 0.0) -> Array:
    """(r_i - mean(r)) / std(r), DeepSeekMath §4.1.2; 0 where all rewards are equal.

    The paper gives neither the degrees of freedom of the std nor a guard against a std of 0.
    """
    std = r.std(axis=1, keepdims=True, ddof=ddof) + guard
    return np.divide(centered(r), std, out=np.zeros_like(r), where=std > 0)


def leave_one_out(r: Array) -> Array:
    """r_i - 1/(k-1) sum_{j != i} r_j: RLOO (Ahmadian et al. 2024, §3.2)."""
    k = r.shape[1]
    return np.array([[row[i] - np.delete(row, i).sum() / (k - 1) for i in range(k)] for row in r])


def moving_average(r: Array, earlier: Sequence[Array]) -> Array:
    """r_i - b, b the mean of all rewards of earlier rollouts (Ahmadian et al. 2024, §3.1).

    The paper does not say what comes before the first: here its own mean.
    """
    return r - np.concatenate([e.ravel() for e in earlier or [r]]).mean()


def best(r: Array) -> Array:
    """r_i where it is the largest of its group, else 0."""
    return np.where(r == r.max(axis=1, keepdims=True), r, 0.0)


def positive(correct: Array) -> Array:
    """1[o is correct]: the gradient coefficient of Online RFT."""
    return (correct > 0).astype(float)


def negative(correct: Array) -> Array:
    """-1[o is wrong]: negative sample reinforcement, Zhu et al. 2025 (arXiv 2506.01347)."""
    return -(correct <= 0).astype(float)


def weighted(correct: Array, weight: float = 0.1) -> Array:
    """lambda 1[o is right] - 1[o is wrong]: W-REINFORCE, the same."""
    return np.where(correct > 0, weight, -1.0)


def pass_at_k(correct: Array, k: int) -> Array:
    """The mean over all choices of k that contain o_i of (R - mean) / std, R = max of the k rewards.

    Chen et al. 2025 (arXiv 2508.10751): the mean and std are over all choices of k of the group.
    """
    result = np.zeros(correct.shape)
    for group, row in enumerate(correct > 0):
        choices = list(itertools.combinations(range(len(row)), k))
        rewards = np.array([any(row[i] for i in choice) for choice in choices], dtype=float)
        for i in range(len(row)):
            of_i = [reward for choice, reward in zip(choices, rewards, strict=True) if i in choice]
            if rewards.std() > 0:
                result[group, i] = (np.mean(of_i) - rewards.mean()) / rewards.std()
    return result


def above_mean(r: Array, ddof: int = 0, guard: float = 0.0) -> Array:
    """max(0, normalized(r)): positive only, Carrino et al. 2026 (arXiv 2603.18756)."""
    return np.maximum(normalized(r, ddof, guard), 0.0)


def process(
    steps: Sequence[Sequence[tuple[int, float]]], lengths: Sequence[int], ddof: int = 0, guard: float = 0.0
) -> list[Array]:
    """Token advantages of one group under process supervision, DeepSeekMath §4.1.3.

    `steps`: of each completion (index, reward), index the last token of the step. The rewards are normalised
    by the mean and std of all steps of the group; a token's advantage is the sum of those with index(j) >= t.
    """
    every = np.array([reward for completion in steps for _, reward in completion])
    std = every.std(ddof=ddof) + guard if len(every) > ddof else 0.0
    result = []
    for completion, length in zip(steps, lengths, strict=True):
        advantage = np.zeros(length)
        for index, reward in completion:
            advantage[: index + 1] += (reward - every.mean()) / std if std > 0 else 0.0
        result.append(advantage)
    return result


def soft_overlong(length: int, cap: int, cache: int) -> float:
    """DAPO Eq. 13: 0 up to cap - cache, then down to -1 at the cap."""
    if length <= cap - cache:
        return 0.0
    return (cap - cache - length) / cache if length <= cap else -1.0


# -- terms --------------------------------------------------------------------------------------------------


def frozen(x: Tensor) -> Tensor:
    """sg[x]"""
    return x.detach()


def surrogate(s: Sample) -> Tensor:
    """pi/sg[pi] of each token: 1, with the gradient of its log-probability: (T,)"""
    return (s.logp - frozen(s.logp)).exp()


def kl(s: Sample) -> Tensor:
    """pi_ref/pi - log(pi_ref/pi) - 1 of each token (DeepSeekMath Eq. 4, "k3"): (T,)"""
    assert s.reference is not None
    log_ratio = s.reference - s.logp
    return log_ratio.exp() - log_ratio - 1


def clipped(ratio: Tensor, advantage: Tensor, low: float, high: float) -> Tensor:
    """min(ratio A, clip(ratio, 1 - low, 1 + high) A)"""
    return torch.minimum(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)


def token_ratio(s: Sample) -> Tensor:
    """pi(o_t) / pi_old(o_t): (T,)"""
    return (s.logp - s.old).exp()


def sequence_ratio(s: Sample) -> Tensor:
    """(pi(o) / pi_old(o))^(1/|o|), GSPO Eq. 7: ()"""
    return (s.logp - s.old).mean().exp()


def token_terms(s: Sample, low: float, high: float, beta: float) -> Tensor:
    """The bracket of DeepSeekMath Eq. 3: (T,)"""
    terms = clipped(token_ratio(s), s.advantage, low, high)
    return terms - beta * kl(s) if beta else terms


def total(values: Sequence[Tensor]) -> Tensor:
    return torch.stack([*values, torch.zeros((), dtype=torch.float64)]).sum()


# -- objectives ---------------------------------------------------------------------------------------------
# of the completions of one optimizer step; a masked one has no terms


def reinforce(batch: Sequence[Sample]) -> Tensor:
    """Ahmadian et al. 2024: its gradient is the mean of A_i grad log pi(o_i), its value that of |o_i| A_i."""
    return total([(surrogate(s) * s.advantage).sum() for s in batch if len(s)]) / len(batch)


def likelihood(batch: Sequence[Sample]) -> Tensor:
    """1/|o_i| sum_t A_i grad log pi(o_t) in gradient: Online RFT, DeepSeekMath §A.1.3."""
    return total([(surrogate(s) * s.advantage).mean() for s in batch if len(s)]) / len(batch)


def grpo(batch: Sequence[Sample], low: float, high: float, beta: float = 0.0) -> Tensor:
    """1/G sum_i 1/|o_i| sum_t {min(...) - beta D_KL}: DeepSeekMath Eq. 3."""
    return total([token_terms(s, low, high, beta).mean() for s in batch if len(s)]) / len(batch)


def dapo(batch: Sequence[Sample], low: float, high: float, beta: float = 0.0) -> Tensor:
    """1/sum_i |o_i| sum_i sum_t min(...): DAPO Eq. 8, i over the minibatch where the paper has a group."""
    tokens = sum(len(s) for s in batch)
    return total([token_terms(s, low, high, beta).sum() for s in batch if len(s)]) / max(tokens, 1)


def dr_grpo(batch: Sequence[Sample], low: float, high: float, beta: float = 0.0) -> Tensor:
    """1/G sum_i sum_t min(...): Dr. GRPO, §3.1."""
    return total([token_terms(s, low, high, beta).sum() for s in batch if len(s)]) / len(batch)


def gspo(batch: Sequence[Sample], low: float, high: float) -> Tensor:
    """1/G sum_i min(s_i A_i, clip(s_i) A_i): GSPO Eq. 5."""
    return total([clipped(sequence_ratio(s), s.advantage, low, high) for s in batch if len(s)]) / len(batch)


def gspo_token(batch: Sequence[Sample], low: float, high: float) -> Tensor:
    """1/G sum_i 1/|o_i| sum_t min(s_it A_it, clip(s_it) A_it), s_it = sg[s_i] pi/sg[pi]: GSPO Eq. 13-14."""
    kept = [s for s in batch if len(s)]
    ratios = [frozen(sequence_ratio(s)) * surrogate(s) for s in kept]
    terms = [clipped(r, s.advantage, low, high).mean() for r, s in zip(ratios, kept, strict=True)]
    return total(terms) / len(batch)


def cispo(batch: Sequence[Sample], low: float, high: float) -> Tensor:
    """1/sum_i |o_i| sum_i sum_t sg[clip(r_it, 1 - low, 1 + high)] A_it log pi(o_it): MiniMax-M1 Eq. 4-5."""
    kept = [s for s in batch if len(s)]
    weights = [frozen(token_ratio(s).clamp(1 - low, 1 + high)) for s in kept]
    terms = [(w * s.advantage * s.logp).sum() for w, s in zip(weights, kept, strict=True)]
    return total(terms) / max(sum(len(s) for s in kept), 1)


def covariance(batch: Sequence[Sample]) -> list[Tensor]:
    """(log pi - mean) (A - mean) of each token, means over all tokens: Cui et al. 2025 (arXiv 2505.22617)."""
    advantages = [s.advantage.expand(len(s)) for s in batch]
    center = [torch.cat(values).mean() for values in ([frozen(s.logp) for s in batch], advantages)]
    return [(frozen(s.logp) - center[0]) * (a - center[1]) for s, a in zip(batch, advantages, strict=True)]


def clip_cov(batch: Sequence[Sample], low: float, high: float, least: float, most: float) -> Tensor:
    """GRPO without the terms of the tokens with a covariance between `least` and `most`.

    The constant terms of tokens that the ratio's clip cuts stay.
    """
    terms = []
    for s, values in zip(batch, covariance(batch), strict=True):
        ratio = token_ratio(s)
        cut = ((s.advantage > 0) & (ratio > 1 + high)) | ((s.advantage < 0) & (ratio < 1 - low))
        free = cut | (values <= least) | (values >= most)
        terms.append((clipped(ratio, s.advantage, low, high) * free).mean())
    return total(terms) / len(batch)


def kl_cov(batch: Sequence[Sample], low: float, high: float, share: float, weight: float) -> Tensor:
    """GRPO less `weight` |log pi - log pi_old| at the share of the tokens with the highest covariance."""
    every = torch.cat(covariance(batch)).sort(descending=True).values
    least = every[max(int(share * len(every)), 1) - 1]
    terms = []
    for s, values in zip(batch, covariance(batch), strict=True):
        penalty = weight * (s.logp - s.old).abs() * (values >= least)
        terms.append((clipped(token_ratio(s), s.advantage, low, high) - penalty).mean())
    return total(terms) / len(batch)


def by_entropy(batch: Sequence[Sample], low: float, high: float, share: float, top: bool) -> Tensor:
    """GRPO of the share of all tokens with the highest or lowest entropy: Wang et al. (arXiv 2506.01939)."""
    every = torch.cat([s.entropy for s in batch])
    level = torch.quantile(every, 1 - share if top else share)
    terms = []
    for s in batch:
        learns = s.entropy >= level if top else s.entropy < level
        terms.append((clipped(token_ratio(s), s.advantage, low, high) * learns).mean())
    return total(terms) / len(batch)


Objective = Callable[[Sequence[Sample]], Tensor]


def mean_of(objective: Objective, parts: Sequence[Sequence[Sample]]) -> Tensor:
    """The mean of an objective over parts of a step: TRL's "bnpo" is `dapo` of each micro-batch."""
    return torch.stack([objective(part) for part in parts]).mean()
