"""The KL divergence of two policies and the entropy of a policy, in nats, and an adaptive KL coefficient."""

import torch

ESTIMATORS = ("k1", "k2", "k3")
LARGEST_ERROR = 0.2  # the adaptive controller clips the relative error of the KL to this


def kl(log_probs: torch.Tensor, ref_log_probs: torch.Tensor, estimator: str) -> torch.Tensor:
    """Return an estimate of KL(pi || pi_ref) at each token that pi has sampled, elementwise.

    With d = log pi_ref - log pi (Schulman, Approximating KL Divergence, 2020), the estimators are k1 = -d,
    unbiased; k2 = d^2 / 2, biased, with little variance; k3 = e^d - 1 - d, unbiased and never negative, which
    CS336 uses.
    """
    d = ref_log_probs - log_probs
    if estimator == "k1":
        return -d
    if estimator == "k2":
        return d.square() / 2
    if estimator == "k3":
        return d.expm1() - d
    raise ValueError(f"no estimator {estimator!r}")


def kl_penalty(
    log_probs: torch.Tensor, ref_log_probs: torch.Tensor, estimator: str, mask: torch.Tensor
) -> torch.Tensor:
    """Return the KL of a response, summed over its tokens, as a mean over responses: (batch, time) -> ().

    It is `compute_kl_penalty` of CS336 (2025), lecture 17.
    """
    return (kl(log_probs, ref_log_probs, estimator) * mask).sum(dim=1).mean()


def exact_kl(log_pi: torch.Tensor, log_ref: torch.Tensor) -> torch.Tensor:
    """Return KL(pi || pi_ref) of the next token: (..., vocabulary) -> (...)."""
    return (log_pi.exp() * (log_pi - log_ref)).sum(dim=-1)


def entropy(log_pi: torch.Tensor) -> torch.Tensor:
    """Return the entropy of the next token: (..., vocabulary) -> (...)."""
    return -(log_pi.exp() * log_pi).sum(dim=-1)


def adapted_coefficient(kl_coef: float, kl: float, target: float, gain: float) -> float:
    r"""Return the next \beta of an adaptive KL penalty (Ziegler et al. 2019, arXiv 1909.08593, §2.2).

    \beta <- \beta (1 + gain clip(KL/target - 1, -0.2, 0.2)), where KL is the mean over the sequences of this
    rollout. KL and `target`, the KL wanted, are in nats.
    """
    error = min(max(kl / target - 1, -LARGEST_ERROR), LARGEST_ERROR)
    return kl_coef * (1 + gain * error)
