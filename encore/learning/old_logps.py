"""Old log-probabilities with the bits of the new ones: until the policy changes, every ratio is exactly 1.

A row's log-probabilities depend on the batch that it is run in: by a millionth in float32 on a CPU, by a
hundredth in bf16, where GSPO's clip is 3e-4. TRL computes old and reference ones when a rollout is sampled,
and shuffles its rows afterwards. Where that matters, they are computed after the shuffle instead, minibatch
by minibatch, just as the loss will compute the new ones.
"""

from typing import Any

import torch
from trl.models.utils import disable_gradient_checkpointing

from encore.learning.lean import LeanSampling

# of a batch, (batch, time): of the policy that sampled; of the reference
OLD, REFERENCE = "old_per_token_logps", "ref_per_token_logps"


class OldLogProbs(LeanSampling):
    """GRPOTrainer whose old and reference log-probabilities have the bits of the policy's in the loss."""

    postponed = True  # whether nothing reads them before the loss does
    args: Any
    beta: Any
    ref_model: Any
    use_vllm: Any
    vllm_importance_sampling_correction: Any
    _buffered_inputs: Any
    _sampling = False

    def _generate_and_score_completions(self, inputs):
        corrected = self.use_vllm and self.vllm_importance_sampling_correction
        adapted = self.beta and self.ref_model is None  # the reference is the policy without its adapter
        awaited = corrected or adapted or not self.postponed
        self._sampling = self.model.training and not self.fine and not awaited
        try:
            return super()._generate_and_score_completions(inputs)
        finally:
            self._sampling = False

    def _get_per_token_logps_and_entropies(
        self, model, input_ids, attention_mask, logits_to_keep, *args, **kwargs
    ):
        if self._sampling:  # nan, so that none is ever taken for a number
            later = torch.full((len(input_ids), logits_to_keep), torch.nan, device=input_ids.device)
            return later, None, None
        return super()._get_per_token_logps_and_entropies(
            model, input_ids, attention_mask, logits_to_keep, *args, **kwargs
        )

    def _prepare_inputs(self, generation_batch):
        earlier = self._buffered_inputs
        inputs = super()._prepare_inputs(generation_batch)
        if self.model.training and self._buffered_inputs is not earlier and not self.fine:
            with (
                torch.no_grad(),
                disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs),
            ):
                for part in self._buffered_inputs:  # `inputs` is one of them
                    self._compute_again(part)
        return inputs

    def _compute_again(self, part: dict[str, Any]) -> None:
        """Compute OLD and REFERENCE, if a minibatch has them, as its loss computes the new ones."""
        ids = torch.cat([part["prompt_ids"], part["completion_ids"]], dim=1)
        real = torch.cat([part["prompt_mask"], part["completion_mask"]], dim=1)
        for name, model in ((OLD, self.model), (REFERENCE, self.ref_model)):
            if name in part and model is not None:
                part[name] = self._get_per_token_logps_and_entropies(
                    model,
                    ids,
                    real,
                    part["completion_ids"].shape[1],
                    compute_aux_loss=self.aux_loss_enabled,
                )[0]
