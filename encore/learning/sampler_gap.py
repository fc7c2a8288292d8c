r"""How far a sampler's log-probabilities are from the trainer's, before the first update with a rollout.

TRL measures it only where it also reweights the loss by it (`vllm_importance_sampling_correction`).

| metric      | of the tokens since the last log line, where the sampler tells its own log-probabilities |
|-------------|------------------------------------------------------------------------------------------|
| sampler_gap | mean abs(log \pi_sampler - log \pi), nats a token                                        |
"""

from typing import Any

import torch

from encore.runtime.health import Precision


class SamplerGap:
    """Sums over the processes and micro-batches of a log line."""

    def __init__(self) -> None:
        self.sums = torch.zeros(2, dtype=torch.float64)  # tokens, and their absolute differences

    def add(self, sampled: torch.Tensor, logps: torch.Tensor, mask: torch.Tensor, accelerator: Any) -> None:
        """Take in a micro-batch; tensors (batch, time). `sampled` is NaN where the sampler does not know."""
        gaps = (sampled - logps)[mask.bool() & ~sampled.isnan()].abs().double()
        sums = torch.stack([gaps.new_tensor(len(gaps)), gaps.sum()])
        self.sums += accelerator.reduce(sums, reduction="sum").cpu()

    def flush(self) -> dict[str, float]:
        """The metric since the last flush; none where nothing was added."""
        tokens, total = self.sums.tolist()
        self.sums = torch.zeros_like(self.sums)
        return {"sampler_gap": total / tokens} if tokens else {}


def precision(args: Any, model: Any) -> Precision:
    """Return in which precision `model` is trained with `args`, transformers' TrainingArguments."""
    narrow = any(w.dtype in (torch.bfloat16, torch.float16) for w in model.parameters())
    return "half" if args.bf16 or args.fp16 or narrow else "full"
