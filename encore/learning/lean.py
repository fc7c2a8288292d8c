"""Rollouts of small models in less time: sampling by our decoder, and log-probabilities without the padding.

The log-probabilities are the same numbers as TRL's, from about half the work. TRL runs the policy over a
rectangle as wide as the longest prompt plus the longest completion of a rollout. Here the rows are moved to
the left, sorted by length and run in a few pieces, each as wide as its longest row. Without padding on the
left a causal model needs no attention mask, and as positions are relative (RoPE), moving a row changes
nothing.
"""

from functools import cached_property
from typing import Any

import torch
from torch.nn import functional
from trl import GRPOTrainer

from encore.models.packing import IGNORED, in_order, longest_first, piece_rows, to_the_left
from encore.sampling.decoding import sample


class LeanLogProbs(GRPOTrainer):
    """GRPOTrainer with policy, old and reference log-probabilities in pieces of like length."""

    def _get_per_token_logps_and_entropies(
        self,
        model,
        input_ids,
        attention_mask,
        logits_to_keep,
        batch_size=None,
        compute_entropy=False,
        compute_aux_loss=False,
        **images,
    ):
        # several processes must call the model equally often, and only TRL lays out images
        if (
            compute_aux_loss
            or self.accelerator.num_processes > 1
            or any(v is not None for v in images.values())
        ):
            return super()._get_per_token_logps_and_entropies(
                model,
                input_ids,
                attention_mask,
                logits_to_keep,
                batch_size=batch_size,
                compute_entropy=compute_entropy,
                compute_aux_loss=compute_aux_loss,
                **images,
            )
        ids, lengths = to_the_left(input_ids, attention_mask)
        starts = attention_mask[:, :-logits_to_keep].sum(dim=1)  # (batch,): where each completion begins
        pieces = longest_first(lengths, piece_rows(batch_size or len(ids)))
        logps, entropies = [], []
        steps = torch.arange(logits_to_keep, device=ids.device)
        for piece in pieces:
            width = max(2, int(lengths[piece[0]]))  # one token alone has no log-probability
            tokens, start, length = ids[piece, :width], starts[piece, None], lengths[piece, None]
            place = torch.arange(width, device=ids.device)
            labels = tokens.masked_fill((place < start) | (place >= length), IGNORED)
            with self.accelerator.autocast():
                outputs = model(input_ids=tokens, labels=labels, fused_lm_head=True)
            # outputs.log_probs: (rows, width - 1), of tokens 1…; completions back to column 0
            column = (start + steps - 1).clamp(max=width - 2)
            real = start + steps < length
            logps.append(outputs.log_probs.gather(1, column) * real)
            if compute_entropy:
                entropies.append(outputs.entropy.gather(1, column) * real)
        return in_order(logps, pieces), in_order(entropies, pieces) if compute_entropy else None, None


class LeanSampling(LeanLogProbs):
    """GRPOTrainer whose rollouts, if `lean`, come from `sample`; and, where `fine`, old log-probabilities."""

    lean = False
    model: Any
    temperature: Any
    max_completion_length: Any
    eos_token_ids: Any
    _drawn: torch.Tensor | None = None  # log-probabilities of the rollout that is being scored

    @cached_property
    def fine(self) -> bool:
        """Whether rounding hardly moves a log-probability: in float32 on a CPU, by a millionth."""
        dtypes = {weight.dtype for weight in self.model.parameters()}
        whole = self.accelerator.mixed_precision == "no" and dtypes <= {torch.float32, torch.float64}
        return whole and self.accelerator.device.type == "cpu"

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        if not self.lean:
            return super()._generate_single_turn(prompt_ids, *args, **kwargs)
        ids, drawn = sample(
            self.accelerator.unwrap_model(self.model),
            prompt_ids,
            self.max_completion_length,
            self.temperature,
            self.eos_token_ids,
        )
        self._drawn = drawn if self.fine else None
        return ids, [row[: len(own)] for row, own in zip(drawn.tolist(), ids, strict=True)]

    def _get_per_token_logps_and_entropies(self, model, *args, **kwargs):
        drawn = self._drawn
        if drawn is None or torch.is_grad_enabled() or model is not self.model:
            return super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
        self._drawn = None
        width = kwargs["logits_to_keep"] if "logits_to_keep" in kwargs else args[2]
        return functional.pad(drawn, (0, width - drawn.shape[1])), None, None  # to a multiple, if TRL pads
