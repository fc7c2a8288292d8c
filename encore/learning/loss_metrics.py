r"""The metrics of GRPO's loss in a log line, by TRL's names; each is a mean over all processes.

| metric                 | what it is, over the tokens in the loss                                          |
|------------------------|----------------------------------------------------------------------------------|
| kl                     | mean of the KL estimate, if the loss has one                                     |
| entropy                | mean entropy of the next token, nats                                             |
| clip_ratio/low_mean    | share where w < 1 - low and A < 0; low_min: the least share of a completion      |
| clip_ratio/high_mean   | share where w > 1 + high and A > 0; high_max: the largest share of a completion  |
| clip_ratio/region_mean | the sum of both shares                                                           |
| cispo_clip_ratio       | share where w > high and A > 0; CISPO alone has it                               |
| cov_fraction           | share that Clip-Cov or KL-Cov holds back                                         |

w is the importance ratio, A the advantage, and low and high are the two epsilons of the clip.
"""

from typing import Any

import torch
from torch import Tensor
from trl.trainer.utils import nanmax, nanmin

from encore.objectives.grpo import LOSSES, Batch, Terms, clip_range, clipped, truncated


def loss_metrics(
    terms: Terms, batch: Batch, entropy: Tensor, args: Any, accelerator: Any, clips: bool = True
) -> dict[str, float]:
    """Return the metrics of a micro-batch: KL and entropy, and the metrics of the clip if `clips` is true.

    `entropy`: (B, T). `args`: TRL's GRPOConfig. The means of micro-batches of like length are weighted, so
    that their mean is the one over the tokens of the optimizer step.
    """

    def mean(values: Tensor) -> float:
        of_tokens = values.shape[1] > 1
        mask = batch.mask if of_tokens else torch.ones_like(values)
        count = batch.step_tokens / batch.micro_batches if batch.by_length and of_tokens else mask.sum()
        sums = torch.stack([(values * mask).sum(), count.float()])
        total, count = accelerator.reduce(sums, reduction="sum")
        return (total / count.clamp(min=1.0)).item()

    def of_completions(values: Tensor) -> Tensor:
        if values.shape[1] == 1:
            return accelerator.gather(values[:, 0])
        # NaN for a completion without tokens
        return accelerator.gather((values * batch.mask).sum(-1) / batch.mask.sum(-1))

    metrics = {} if terms.kl is None else {"kl": mean(terms.kl)}
    metrics["entropy"] = mean(entropy)
    if terms.held is not None:
        metrics["cov_fraction"] = mean(terms.held.float())
    if not clips:
        return metrics
    surrogate, (low, high) = LOSSES[args.loss_type][0], clip_range(args)
    w = terms.ratio if args.delta is None else terms.ratio.clamp(max=args.delta)
    if surrogate is clipped:
        below = ((w < 1 - low) & (batch.advantage < 0)).float()
        above = ((w > 1 + high) & (batch.advantage > 0)).float()
        metrics |= {
            "clip_ratio/low_mean": mean(below),
            "clip_ratio/high_mean": mean(above),
            "clip_ratio/region_mean": mean(below + above),
            "clip_ratio/low_min": nanmin(of_completions(below)).item(),
            "clip_ratio/high_max": nanmax(of_completions(above)).item(),
        }
    elif surrogate is truncated:
        metrics["cispo_clip_ratio"] = mean(((terms.ratio > high) & (batch.advantage > 0)).float())
    return metrics
