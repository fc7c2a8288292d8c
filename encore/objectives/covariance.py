"""Clip-Cov and KL-Cov: an update holds back the tokens that would lower the entropy most (arXiv 2505.22617).

An update lowers the entropy of a policy by about the covariance of log pi and the advantage: likely tokens
with a high advantage become likelier still. A few tokens have most of this covariance.

Covariances are over the tokens of a micro-batch, and shares are of its tokens, as in the authors' code
(verl).
"""

import torch
from torch import Tensor

from encore.objectives.averages import token_mean
from encore.recipe.covariance import ClipCov, KlCov


def covariances(logp: Tensor, advantage: Tensor, mask: Tensor) -> Tensor:
    """Return (log pi - mean) (A - mean) of each token, (B, T) without a gradient; means are over the mask.

    `advantage` is (B, 1) or (B, T).
    """
    logp, advantage = logp.detach(), advantage.expand_as(logp)
    return (logp - token_mean(logp, mask)) * (advantage - token_mean(advantage, mask))


def clip_cov(covariance: Tensor, mask: Tensor, cut: Tensor, limit: ClipCov) -> Tensor:
    """Return, as bool (B, T), the tokens that Clip-Cov keeps from learning.

    They are drawn at random from the tokens whose covariance is between `low` and `high`, and whose gradient
    the clip of the ratio does not cut anyway. At least one is drawn, if there is one.
    """
    eligible = (mask > 0) & ~cut & (covariance > limit.low) & (covariance < limit.high)
    places = eligible.nonzero()
    drawn = places[torch.randperm(len(places))[: _count(mask, limit.share)]]
    chosen = torch.zeros_like(eligible)
    chosen[drawn[:, 0], drawn[:, 1]] = True
    return chosen


def kl_cov(covariance: Tensor, mask: Tensor, limit: KlCov) -> Tensor:
    """Return, as bool (B, T), the tokens with the highest covariance, which KL-Cov penalises.

    There is at least one.
    """
    ranked = covariance.masked_fill(mask == 0, -torch.inf).flatten()
    chosen = torch.zeros_like(ranked, dtype=torch.bool)
    chosen[ranked.topk(min(_count(mask, limit.share), int(mask.sum()))).indices] = True
    return chosen.view_as(mask)


def _count(mask: Tensor, share: float) -> int:
    """Return the number of tokens that a share of the tokens in the loss is, at least 1."""
    return max(int(share * mask.sum().item()), 1)
