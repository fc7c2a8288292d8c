"""ORPO by TRL's DPOTrainer: fine-tuning on chosen completions, with a term against the rejected ones.

With log P(y|x), the mean log-probability of the tokens of y, and odds(y) = P / (1 - P), the loss of a pair is
(Hong et al. 2024, arXiv 2403.07691, Eq. 6 and 7, where lambda is here beta)

    -log P(y_w|x) - lambda log sigmoid( log odds(y_w) - log odds(y_l) )

TRL's loss `sft` is the first term, a mean over the tokens of a micro-batch. TRL has all of ORPO in a trainer
of its own, which is experimental, tokenises differently and cannot resume.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from encore.learning.dpo import DPO

SURE = -1e-6  # the mean log-probability above which a completion counts as certain; its odds are finite then


def _log_odds_ratio(chosen: Tensor, rejected: Tensor) -> Tensor:
    """Return log odds(y_w) - log odds(y_l) of each pair, (B,), from the mean log-probabilities, each (B,)."""
    first, second = (
        logp - torch.log(-torch.expm1(logp)) for logp in (chosen.clamp(max=SURE), rejected.clamp(max=SURE))
    )
    return first - second


class ORPO(DPO):
    """A trainer of ORPO; its datasets hold pairs without a reference."""

    def __init__(self, *, args, **kwargs):
        super().__init__(args=args, **kwargs)
        self.loss_types = ["sft"]

    def _compute_loss(self, model, inputs, return_outputs):
        outputs: list[Any] = []
        hook = model.register_forward_hook(lambda module, arguments, output: outputs.append(output))
        try:
            loss = super()._compute_loss(model, inputs, return_outputs)
        finally:
            hook.remove()
        mask = inputs["completion_mask"][:, 1:]  # (2B, T): first all chosen completions, then all rejected
        logps = outputs[0].log_probs[:, -mask.shape[1] :]  # (2B, T), 0 outside of completions
        log_odds = _log_odds_ratio(*(logps.sum(dim=1) / mask.sum(dim=1)).chunk(2))
        self._metrics["train" if model.training else "eval"]["log_odds"].append(log_odds.mean().item())
        return loss - self.beta * logsigmoid(log_odds).mean()
