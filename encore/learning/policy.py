r"""Log-probabilities of completions under the policy, the old policy (which sampled), and the reference.

**Without the padding.** TRL runs a model over a rectangle as wide as the longest prompt plus the longest
completion. Here the rows are moved to the left, sorted by length and run in a few pieces, each as wide as its
longest row: the same numbers from about half the work. All processes have equally many pieces, of their own
widths, because they must call the model equally often. Without padding on the left a causal model needs no
attention mask, and as positions are relative (RoPE), moving a row changes nothing.

**Bit for bit as in the loss.** A row's log-probabilities depend on the batch that it is run in: by a
millionth in float32 on a CPU, and by a hundredth in bf16, while GSPO's clip is 3e-4. Rows are shuffled after
a rollout is sampled. Where the difference matters, \pi_old and \pi_ref are computed after the shuffle,
minibatch by minibatch, exactly as the loss will compute \pi. Until the policy changes, every ratio is then
exactly 1.
"""

from collections.abc import Iterator, Sequence
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
from encore.learning.samplers import Sampled, Sampler
from encore.models.packing import IGNORED, in_order, longest_first, to_the_left
from encore.recipe.portion import piece_rows


class LogProbs(NamedTuple):
    """The log-probabilities, entropies and further results of a forward pass."""

    logp: Tensor  # (B, T) nats
    entropy: Tensor | None  # (B, T) entropy of the next token, in nats; None unless asked for
    balance: Tensor | None = None  # () load-balancing loss of a mixture of experts; None unless asked for


class Policy:
    """The model that a trainer of TRL trains, and its reference."""

    def __init__(
        self,
        trainer: Any,
        sampler: Sampler,
        reference: Reference | None,
        in_rewards: bool,
        share_prompts: bool,
        in_ratios: bool = True,
    ):
        """Take a trainer's model, its `sampler`, and its `reference`, which is None without a KL term.

        `in_rewards`: the rewards contain the KL. `share_prompts`: a prompt is read once for all its
        completions. `in_ratios`: the loss compares the policy with the policy that sampled.
        """
        self.sampler, self.share_prompts = sampler, share_prompts
        self.trainer, self.reference, self.in_rewards = trainer, reference, in_rewards
        args = trainer.args
        inexact = args.use_vllm or sampler.ahead > 0 or sampler.rounds
        self.corrects = inexact and args.vllm_importance_sampling_correction
        updates = args.steps_per_generation * args.num_iterations  # micro-batches that learn from a rollout
        aligned = args.gradient_accumulation_steps % updates == 0
        self.needs_old = in_ratios and (not aligned or self.corrects or in_rewards)
        self.needs_reference = reference is not None and not in_rewards

    @cached_property
    def fine(self) -> bool:
        """Whether rounding changes a log-probability by only about a millionth, as in float32 on a CPU."""
        accelerator = self.trainer.accelerator
        dtypes = {weight.dtype for weight in self.trainer.model.parameters()}
        whole = accelerator.mixed_precision == "no" and dtypes <= {torch.float32, torch.float64}
        return whole and accelerator.device.type == "cpu"

    @property
    def old_samples(self) -> bool:
        """Whether pi_old is the older policy that sampled the present rollout: encore/learning/ahead.py."""
        return self.sampler.staleness > 0 and not self.corrects

    @property
    def postpones(self) -> bool:
        """Whether pi_old and pi_ref of a rollout are computed only after its shuffle.

        They are computed before if a reward or an advantage needs them, or if the reference is the policy
        without its adapter.
        """
        adapted = self.needs_reference and self.reference is not None and self.reference.model is None
        return not (self.fine or self.corrects or self.in_rewards or adapted)

    def sampled(self, tokens: Tokens, sampled: Sampled) -> tuple[Tensor | None, Tensor | None]:
        """Return log pi_old and log pi_ref of a new rollout, each (B, T); None if not needed now.

        The sampler's log-probabilities serve as pi_old if they differ from the policy's by rounding alone, or
        if pi_old is an older policy.
        """
        fresh = not self.sampler.staleness
        equal = self.needs_old and sampled.exact and self.fine and fresh
        old = reference = None
        if sampled.logps and (equal or self.old_samples):
            old = self.as_rectangle(sampled.logps, tokens.time)
        if self.postpones:
            return old, None
        rows = self.trainer.args.per_device_train_batch_size
        with torch.no_grad(), self.without_checkpointing():
            if self.needs_old and old is None:
                old = self.logps(self.trainer.model, tokens, rows).logp
            if self.reference:
                reference = self.of_reference(tokens, rows)
        return old, reference

    def shuffled(self, batch: Minibatch) -> Minibatch:
        """Return a shuffled minibatch, with log pi_old and log pi_ref if they were postponed."""
        if self.fine:
            return batch
        old, reference = batch.old, batch.ref
        with torch.no_grad(), self.without_checkpointing():
            if self.needs_old and not self.old_samples:
                old = self.logps(self.trainer.model, batch).logp
            if self.needs_reference and self.reference and self.reference.model is not None:
                reference = self.of_reference(batch)
        return replace(batch, old=old, ref=reference)

    def of_reference(self, tokens: Tokens, rows: int | None = None) -> Tensor:
        """Return log pi_ref of the completions, (B, T), in nats."""
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
        """Return the log-probabilities of completions under `model`, (B, T), run at most `rows` at a time."""
        if with_balance:  # the balancing loss of experts, which only TRL's own forward pass computes
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

    def as_rectangle(self, logps: Sequence[Sequence[float | None]], width: int) -> Tensor:
        """Return the sampler's log-probabilities, (B, width): 0 at padding, NaN where it reports none.

        They are in the precision of the policy, or in float32 if that is higher.
        """
        weight = next(self.trainer.model.parameters())
        dtype = torch.promote_types(weight.dtype, torch.float32)
        rows = [
            torch.tensor([torch.nan if x is None else x for x in row], dtype=dtype, device=weight.device)
            for row in logps
        ]
        return torch.stack([pad(row, (0, width - len(row))) for row in rows])

    @contextmanager
    def without_checkpointing(self) -> Iterator[None]:
        """Switch gradient checkpointing off in the `with` block, for passes without a gradient."""
        options = self.trainer.args.gradient_checkpointing_kwargs
        with disable_gradient_checkpointing(self.trainer.model, options):
            yield


def without_padding(
    model: Any, tokens: Tokens, rows: int | None, with_entropy: bool, accelerator: Any
) -> LogProbs:
    """Return the log-probabilities of completions under `model`, (B, T), 0 at padding.

    Completions of similar length run together, at most `rows` at a time.
    """
    ids, lengths = to_the_left(tokens.ids, tokens.mask)
    starts = tokens.prompt_mask.sum(dim=1)  # (B,) where each completion begins
    pieces = longest_first(lengths, piece_rows(rows or len(ids)))
    logps, entropies = [], []
    steps = torch.arange(tokens.time, device=ids.device)
    for piece in pieces:
        width = max(2, int(lengths[piece[0]]))  # a single token has no log-probability
        inputs, start, length = ids[piece, :width], starts[piece, None], lengths[piece, None]
        place = torch.arange(width, device=ids.device)
        labels = inputs.masked_fill((place < start) | (place >= length), IGNORED)
        with accelerator.autocast():
            outputs = model(input_ids=inputs, labels=labels, fused_lm_head=True)
        # outputs.log_probs: (rows, width - 1), of the tokens from 1 on; moved so that completions begin at
        # column 0
        column = (start + steps - 1).clamp(max=width - 2)
        real = start + steps < length
        logps.append(outputs.log_probs.gather(1, column) * real)
        if with_entropy:
            entropies.append(outputs.entropy.gather(1, column) * real)
    return LogProbs(in_order(logps, pieces), in_order(entropies, pieces) if with_entropy else None)
