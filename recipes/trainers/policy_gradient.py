"""The mathematics of REINFORCE in Stanford CS336 (spring 2025), lecture 17: deltas, losses, ratios, KL.

Pure functions; recipes/trainers/reinforce.py has the loop. Shapes: (prompts, responses) or any other leading
ones, then `time`, the tokens of a row. `mask` is 1 at the tokens of the response, its end included.
"""

from dataclasses import dataclass, fields

import torch

from recipes.errors import UserError, nearest

DELTAS = ("raw", "centered", "normalized", "max")
LOSSES = ("naive", "unclipped", "clipped")
ESTIMATORS = ("k1", "k2", "k3")
STD_GUARD = 1e-5  # the lecture's
LEAST = 1e-4  # nats; the ratio of logs divides by log-probabilities, which are 0 for a token that is certain


@dataclass(frozen=True)
class PolicyGradientConfig:
    """`args` of a stage `policy_gradient`; the lecture's values are in recipes/policy_gradient.yaml."""

    learning_rate: float  # of Adam
    epochs: int  # rollouts
    inner_steps: int  # updates on one rollout
    prompts_per_epoch: int
    num_generations: int  # responses to a prompt
    delta: str
    loss: str
    max_completion_length: int
    epsilon: float = 0.01  # of loss `clipped`
    log_ratio: bool = False  # the lecture's defect, see `ratios`
    reference_epochs: int = 10  # epochs between two references
    kl_coefficient: float = 0.0
    kl_estimator: str = "k3"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        for name, valid in (("delta", DELTAS), ("loss", LOSSES), ("kl_estimator", ESTIMATORS)):
            if (value := getattr(self, name)) not in valid:
                raise UserError(f'args.{name}: unknown value "{value}"{nearest(value, [*valid])}')
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and not value >= 1:
                raise UserError(f"args.{field.name}: expected at least 1, got {value}")
            zero = field.name == "kl_coefficient"
            if field.type is float and not (value >= 0 if zero else value > 0):
                raise UserError(
                    f"args.{field.name}: expected {'at least' if zero else 'more than'} 0, got {value}"
                )
        if self.num_generations < 2 and self.delta in ("centered", "normalized"):
            raise UserError(f"args.num_generations: delta {self.delta} compares at least 2 responses, got 1")
        if self.log_ratio and self.loss == "naive":
            raise UserError("args.log_ratio: loss naive has no ratio; use unclipped or clipped")


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


def ratios(log_probs: torch.Tensor, old_log_probs: torch.Tensor, log_ratio: bool = False) -> torch.Tensor:
    """pi / pi_old of each token, elementwise: exp(log pi - log pi_old).

    `log_ratio` is what the lecture's code computes instead: log pi / log pi_old. Both logs are negative, so
    its gradient with respect to log pi, 1 / log pi_old, is negative as well: a good response gets *less*
    likely. Old log-probabilities above -1e-4 count as -1e-4, for the lecture's division by 0 is NaN.
    """
    if log_ratio:
        return log_probs / old_log_probs.clamp(max=-LEAST)
    return (log_probs - old_log_probs).exp()


def loss(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    deltas: torch.Tensor,
    mode: str,
    epsilon: float = 0.01,
    log_ratio: bool = False,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """The scalar to minimise: the mean over all response tokens of

        naive      -delta log pi
        unclipped  -delta pi / pi_old
        clipped    -min(delta pi / pi_old, delta clip(pi / pi_old, 1 - epsilon, 1 + epsilon))

    `log_probs`, `old_log_probs` (a constant) and `mask`: (..., time); `deltas`: (...).
    """
    delta = deltas.unsqueeze(-1)
    if mode == "naive":
        objective = delta * log_probs
    else:
        ratio = ratios(log_probs, old_log_probs, log_ratio)
        objective = delta * ratio
        if mode == "clipped":
            objective = torch.minimum(objective, delta * ratio.clamp(1 - epsilon, 1 + epsilon))
        elif mode != "unclipped":
            raise ValueError(f"no loss {mode!r}")
    return -mean(objective, mask)


def kl(log_probs: torch.Tensor, ref_log_probs: torch.Tensor, estimator: str) -> torch.Tensor:
    """An estimate of KL(pi || pi_ref) from tokens that pi has sampled, nats, elementwise.

    With d = log pi_ref - log pi (Schulman, Approximating KL Divergence, 2020): k1 = -d, unbiased;
    k2 = d^2 / 2, biased, of little variance; k3 = e^d - 1 - d, unbiased and never negative (the lecture's).
    """
    d = ref_log_probs - log_probs
    if estimator == "k1":
        return -d
    if estimator == "k2":
        return d.square() / 2
    if estimator == "k3":
        return d.expm1() - d
    raise ValueError(f"no estimator {estimator!r}")


def exact_kl(log_pi: torch.Tensor, log_ref: torch.Tensor) -> torch.Tensor:
    """KL(pi || pi_ref) of the next token, nats: (..., vocabulary) -> (...)."""
    return (log_pi.exp() * (log_pi - log_ref)).sum(dim=-1)


def mean(values: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """The mean of `values` where `mask` is 1, of all of them without a mask."""
    return values.mean() if mask is None else (values * mask).sum() / mask.sum()
