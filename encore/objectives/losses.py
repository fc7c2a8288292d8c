"""The losses of our own trainers: policy gradient, value function, ranked responses, binary labels."""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from encore.objectives.averages import token_mean
from encore.objectives.clip import clipped
from encore.objectives.ratios import token_ratios

LOSSES = ("naive", "unclipped", "clipped")


def policy_gradient(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    deltas: torch.Tensor,
    mode: str,
    epsilon: float = 0.01,
    log_ratio: bool = False,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the scalar to minimise, a mean over all response tokens.

    The mean is over this term, by `mode`:

        naive      -delta log pi
        unclipped  -delta pi / pi_old
        clipped    -min(delta pi / pi_old, delta clip(pi / pi_old, 1 - epsilon, 1 + epsilon))

    `log_probs`, `old_log_probs` (a constant) and `mask`: (..., time); `deltas`: (...).
    """
    delta = deltas.unsqueeze(-1)
    if mode == "naive":
        return -token_mean(delta * log_probs, mask)
    ratio = token_ratios(log_probs, old_log_probs, log_ratio)
    if mode == "unclipped":
        return -token_mean(delta * ratio, mask)
    if mode == "clipped":
        return -token_mean(clipped(ratio, delta, epsilon, epsilon), mask)
    raise ValueError(f"no loss {mode!r}")


def value_terms(
    values: torch.Tensor, old: torch.Tensor, returns: torch.Tensor, clip: float
) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Return the value loss of each token, and where the clip has cut its gradient; `clip` 0 means no clip.

    The loss is 1/2 max((V - R)^2, (clip(V, V_old - clip, V_old + clip) - R)^2), as in the code of Ziegler et
    al. 2019.
    """
    plain = (values - returns).square()
    if not clip:
        return plain / 2, torch.zeros_like(plain, dtype=torch.bool)
    held = (old + (values - old).clamp(-clip, clip) - returns).square()
    return torch.maximum(plain, held) / 2, held > plain


def k_wise(
    rewards: torch.Tensor, batch: dict[str, torch.Tensor], centre: float | None = None
) -> torch.Tensor:
    """Return InstructGPT's loss of ranked responses (arXiv 2203.02155, Eq. 1), as a mean over prompts.

    `rewards`: (rows,). `batch` holds `better` and `worse` (pairs,), the numbers of the rows that a pair
    compares, and `weight` (pairs,), which sums to 1. `centre` is the weight of (r_w + r_l)^2, TRL's
    center_rewards_coefficient (Eisenstein et al. 2023).
    """
    better, worse = rewards[batch["better"]], rewards[batch["worse"]]  # (pairs,)
    each = -logsigmoid(better - worse)
    if centre is not None:
        each = each + centre * (better + worse) ** 2
    return (batch["weight"] * each).sum()


def right_or_wrong(logits: torch.Tensor, labels: torch.Tensor, solutions: int) -> torch.Tensor:
    """Return the binary cross-entropy at the labelled positions, as a mean over solutions.

        -1/S sum over positions ( y log sigmoid(r) + (1 - y) log(1 - sigmoid(r)) )

    `logits` r and `labels` y in [0, 1] are both (positions,), over S = `solutions` solutions. With a position
    at the end of each step this is the loss of Math-Shepherd's process reward model (arXiv 2312.08935, §3).
    With one position at the end of a solution it is the loss of their outcome reward model.
    """
    return binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="sum") / solutions
