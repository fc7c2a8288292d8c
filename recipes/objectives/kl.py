"""Estimators of the divergence of two policies, and the coefficient that holds it at a target."""

import torch

ESTIMATORS = ("k1", "k2", "k3")
LARGEST_ERROR = 0.2  # of the KL, relative to its target, that the controller reacts to


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


def adapted_coefficient(kl_coef: float, kl: float, target: float, gain: float) -> float:
    r"""The next \beta, given the mean KL of a sequence (nats) in this rollout and the one wanted."""
    error = min(max(kl / target - 1, -LARGEST_ERROR), LARGEST_ERROR)
    return kl_coef * (1 + gain * error)
