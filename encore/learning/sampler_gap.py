r"""The gap between a sampler's log-probabilities and the trainer's, before the first update with a rollout.

TRL measures it only if it also reweights the loss by it (`vllm_importance_sampling_correction`).

| metric      | what it is, over the tokens since the last log line, if the sampler reports probabilities |
|-------------|-------------------------------------------------------------------------------------------|
| sampler_gap | mean abs(log \pi_sampler - log \pi), nats a token                                         |
"""

from typing import Any

import torch

from encore.runtime.health import Precision


class SamplerGap:
    """The gap between sampler and trainer in a log line, summed over processes and micro-batches."""

    def __init__(self) -> None:
        self.sums = torch.zeros(2, dtype=torch.float64)  # number of tokens, sum of their absolute differences

    def add(self, sampled: torch.Tensor, logps: torch.Tensor, mask: torch.Tensor, accelerator: Any) -> None:
        """Add a micro-batch of tensors (batch, time). `sampled` is NaN where the sampler reports nothing."""
        gaps = (sampled - logps)[mask.bool() & ~sampled.isnan()].abs().double()
        sums = torch.stack([gaps.new_tensor(len(gaps)), gaps.sum()])
        self.sums += accelerator.reduce(sums, reduction="sum").cpu()

    def flush(self) -> dict[str, float]:
        """Return the metric since the last flush; {} if nothing was added."""
        tokens, total = self.sums.tolist()
        self.sums = torch.zeros_like(self.sums)
        return {"sampler_gap": total / tokens} if tokens else {}


def precision(args: Any, model: Any, rounded_sampler: bool = False) -> Precision:
    """Return the precision in which `model` is trained with `args`, transformers' TrainingArguments.

    It is "rounded" with `rounded_sampler`: if a stage's `sampler_precision` rounds what samples.
    """
    if rounded_sampler:
        return "rounded"
    narrow = any(w.dtype in (torch.bfloat16, torch.float16) for w in model.parameters())
    return "half" if args.bf16 or args.fp16 or narrow else "full"
