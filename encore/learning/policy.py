r"""Log-probabilities of completions: of the policy, of the policy when it sampled, and of the reference.

**Without the padding.** TRL runs a model over a rectangle as wide as the longest prompt plus the longest
completion. Here the rows are moved to the left, sorted by length and run in a few pieces, each as wide as its
longest row: the same numbers from about half the work. Several processes have as many pieces each, of their
own widths, for they must call the model equally often. Without padding on the left a causal model needs no
attention mask, and as positions are relative (RoPE), moving a row changes nothing.

**With the bits of the loss.** A row's log-probabilities depend on the batch that it is run in: by a millionth
in float32 on a CPU, by a hundredth in bf16, where GSPO's clip is 3e-4. Rows are shuffled after a rollout was
sampled. Where that matters, \pi_old and \pi_ref are computed after the shuffle, minibatch by minibatch, just
as the loss will compute \pi: until the policy changes, every ratio is exactly 1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from trl.models.utils import disable_gradient_checkpointing

from encore.learning import shared_prompts
from encore.learning.minibatch import Minibatch, Tokens
from encore.learning.reference import Reference
from encore.learning.samplers import Sampled
from encore.models.packing import IGNORED, in_order, longest_first, piece_rows, to_the_left


class LogProbs(NamedTuple):
    """What a forward pass gives."""

    logp: Tensor  # (B, T) nats
    entropy: Tensor | None  # (B, T) of the next token, nats; None unless asked for
    balance: Tensor | None = None  # () the loss that balances a mixture of experts; None unless asked for


class Policy:
    """The model that a trainer of TRL's trains, and its reference."""

    def __init__(self, trainer: Any, reference: Reference | None, in_rewards: bool, share_prompts: bool):
        """`reference`: None without KL. `in_rewards`: whether the KL is in the rewards, not in the loss.

        `share_prompts`: read a prompt once for all its completions.
        """
        self.share_prompts = share_prompts
        self.trainer, self.reference, self.in_rewards = trainer, reference, in_rewards
        args = trainer.args
        self.corrects = args.use_vllm and args.vllm_importance_sampling_correction
        updates = args.steps_per_generation * args.num_iterations  # micro-batches that learn from a rollout
        aligned = args.gradient_accumulation_steps % updates == 0
        self.needs_old = not aligned or self.corrects or in_rewards
        self.needs_reference = reference is not None and not in_rewards

    @cached_property
    def fine(self) -> bool:
        """Whether rounding hardly moves a log-probability: in float32 on a CPU, by a millionth."""
        accelerator = self.trainer.accelerator
        dtypes = {weight.dtype for weight in self.trainer.model.parameters()}
        whole = accelerator.mixed_precision == "no" and dtypes <= {torch.float32, torch.float64}
        return whole and accelerator.device.type == "cpu"

    @property
    def postpones(self) -> bool:
        """Whether what a rollout is compared with is computed after its shuffle alone.

        Not where something reads it before, nor where the reference is the policy without its adapter.
        """
        adapted = self.needs_reference and self.reference is not None and self.reference.model is None
        return not (self.fine or self.corrects or self.in_rewards or adapted)

    def sampled(self, tokens: Tokens, sampled: Sampled) -> tuple[Tensor | None, Tensor | None]:
        """Return log pi_old and log pi_ref of a new rollout, each (B, T); None if needed later or never.

        Where the sampler's own log-probabilities are the policy's but for rounding, they are pi_old.
        """
        if self.postpones:
            return None, None
        rows = self.trainer.args.per_device_train_batch_size
        old = reference = None
        with torch.no_grad(), self.without_checkpointing():
            if self.needs_old and sampled.exact and sampled.logps and self.fine:
                old = self.as_rectangle(sampled.logps, tokens.time)
            elif self.needs_old:
                old = self.logps(self.trainer.model, tokens, rows).logp
            if self.reference:
                reference = self.of_reference(tokens, rows)
        return old, reference

    def shuffled(self, batch: Minibatch) -> Minibatch:
        """Return a minibatch as its loss will see it, with log pi_old and log pi_ref of its own rectangle."""
        if self.fine:
            return batch
        old, reference = batch.old, batch.ref
        with torch.no_grad(), self.without_checkpointing():
            if self.needs_old:
                old = self.logps(self.trainer.model, batch).logp
            if self.needs_reference and self.reference and self.reference.model is not None:
                reference = self.of_reference(batch)
        return replace(batch, old=old, ref=reference)

    def of_reference(self, tokens: Tokens, rows: int | None = None) -> Tensor:
        """Return log pi_ref, (B, T)."""
        assert self.reference is not None
        with self.reference.in_force(self.trainer) as model:
            return self.logps(model, tokens, rows).logp

    def logps(
        self,
        model: Any,
        tokens: Tokens,
        rows: int | None = None,
        with_entropy: bool = False,
        with_balance: bool = False,
    ) -> LogProbs:
        """Run `model`, at most `rows` completions at a time if given."""
        if with_balance:  # of experts, which TRL alone adds up
            return LogProbs(
                *self.trainer._get_per_token_logps_and_entropies(
                    model,
                    tokens.ids,
                    tokens.mask,
                    tokens.time,
                    batch_size=rows,
                    compute_entropy=with_entropy,
                    compute_aux_loss=with_balance,
                )
            )
        accelerator = self.trainer.accelerator
        if self.share_prompts:
            return LogProbs(*shared_prompts.logps(model, tokens, rows, with_entropy, accelerator))
        return without_padding(model, tokens, rows, with_entropy, accelerator)

    def as_rectangle(self, logps: list[list[float]], width: int) -> Tensor:
        """Return the sampler's log-probabilities in the precision of the policy, (B, width), 0 at padding."""
        weight = next(self.trainer.model.parameters())
        rows = [torch.tensor(row, dtype=weight.dtype, device=weight.device) for row in logps]
        return torch.stack([pad(row, (0, width - len(row))) for row in rows])

    @contextmanager
    def without_checkpointing(self) -> Iterator[None]:
        """For the time of passes without a gradient, switch gradient checkpointing off."""
        options = self.trainer.args.gradient_checkpointing_kwargs
        with disable_gradient_checkpointing(self.trainer.model, options):
            yield


def without_padding(
    model: Any, tokens: Tokens, rows: int | None, with_entropy: bool, accelerator: Any
) -> LogProbs:
    """Run `model` over completions in pieces of like length; 0 at padding."""
    ids, lengths = to_the_left(tokens.ids, tokens.mask)
    starts = tokens.prompt_mask.sum(dim=1)  # (B,) where each completion begins
    pieces = longest_first(lengths, piece_rows(rows or len(ids)))
    logps, entropies = [], []
    steps = torch.arange(tokens.time, device=ids.device)
    for piece in pieces:
        width = max(2, int(lengths[piece[0]]))  # one token alone has no log-probability
        inputs, start, length = ids[piece, :width], starts[piece, None], lengths[piece, None]
        place = torch.arange(width, device=ids.device)
        labels = inputs.masked_fill((place < start) | (place >= length), IGNORED)
        with accelerator.autocast():
            outputs = model(input_ids=inputs, labels=labels, fused_lm_head=True)
        # outputs.log_probs: (rows, width - 1), of tokens 1…; completions back to column 0
        column = (start + steps - 1).clamp(max=width - 2)
        real = start + steps < length
        logps.append(outputs.log_probs.gather(1, column) * real)
        if with_entropy:
            entropies.append(outputs.entropy.gather(1, column) * real)
    return LogProbs(in_order(logps, pieces), in_order(entropies, pieces) if with_entropy else None)
