"""Divergence of two policies and entropy of one, in nats, and the coefficient that holds a KL at a target."""

import torch

ESTIMATORS = ("k1", "k2", "k3")
LARGEST_ERROR = 0.2  # of the KL, relative to its target, that the controller reacts to


def kl(log_probs: torch.Tensor, ref_log_probs: torch.Tensor, estimator: str) -> torch.Tensor:
    """An estimate of KL(pi || pi_ref) at each token that pi has sampled, elementwise.

    With d = log pi_ref - log pi (Schulman, Approximating KL Divergence, 2020): k1 = -d, unbiased;
    k2 = d^2 / 2, biased, with little variance; k3 = e^d - 1 - d, unbiased and never negative (the lecture's).
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
    """The KL of a response, summed over its tokens, as a mean over responses: (batch, time) -> ().

    As in `compute_kl_penalty` of CS336 (2025), lecture 17.
    """
    return (kl(log_probs, ref_log_probs, estimator) * mask).sum(dim=1).mean()


def exact_kl(log_pi: torch.Tensor, log_ref: torch.Tensor) -> torch.Tensor:
    """KL(pi || pi_ref) of the next token: (..., vocabulary) -> (...)."""
    return (log_pi.exp() * (log_pi - log_ref)).sum(dim=-1)


def entropy(log_pi: torch.Tensor) -> torch.Tensor:
    """Entropy of the next token: (..., vocabulary) -> (...)."""
    return -(log_pi.exp() * log_pi).sum(dim=-1)


def adapted_coefficient(kl_coef: float, kl: float, target: float, gain: float) -> float:
    r"""The next \beta of an adaptive KL penalty (Ziegler et al. 2019, arXiv 1909.08593, §2.2).

    \beta <- \beta (1 + gain clip(KL/target - 1, -0.2, 0.2)), with KL the mean of this rollout's sequences
    (nats) and `target` the one wanted.
    """
    error = min(max(kl / target - 1, -LARGEST_ERROR), LARGEST_ERROR)
    return kl_coef * (1 + gain * error)
