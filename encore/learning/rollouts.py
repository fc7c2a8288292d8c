"""Rollouts, whose completions are sampled, scored, shuffled, cut into minibatches and kept for updates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from trl.trainer.utils import pad

from encore.learning import minibatch
from encore.learning.completions import CompletionsLog, Record
from encore.learning.estimators import Estimator
from encore.learning.measures import Measures, record_advantages
from encore.learning.minibatch import Minibatch, Tokens
from encore.learning.policy import Policy
from encore.learning.resumable import EPOCH_STRIDE, State
from encore.learning.samplers import Sampled, Sampler
from encore.learning.scoring import Row, Scorer
from encore.objectives.averages import step_tokens
from encore.objectives.sampler_correction import correction
from encore.recipe.caps import Caps, start
from encore.recipe.loss_types import TOKEN_MEAN


@dataclass(frozen=True)
class Options:
    """The options of rollouts that a stage's keys set."""

    caps: Caps | None = None  # the rising cap of completions; None if the cap is fixed
    log: CompletionsLog | None = None  # the log of every completion
    old_logp_noise: float = 0.0  # standard deviation of the noise on log pi_old, nats
    reshuffle: bool = False  # whether each epoch over a rollout has new minibatches
    by_length: bool = False  # whether micro-batches with completions of like length change no loss
    learn_results: bool = False  # whether a tool's results are in the loss, as if the policy had written them


class Rollouts:
    """The rollouts of a trainer of TRL, one after another."""

    def __init__(
        self,
        trainer: Any,
        sampler: Sampler,
        scorer: Scorer,
        policy: Policy,
        estimator: Estimator,
        measures: Measures,
        options: Options,
    ):
        self.trainer, self.sampler, self.scorer, self.policy = trainer, sampler, scorer, policy
        self.estimator, self.measures, self.options = estimator, measures, options
        self.kept: list[Minibatch] = []
        self.sampled = 0  # number of completions so far, over all processes and rounds
        self.rounds = 0  # number of rounds in which they were sampled

    # -- what an update learns from ----------------------------------------------------------------------

    @property
    def used(self) -> int:
        """The number of micro-batches that have learned from the present rollout."""
        args = self.trainer.args
        return self.trainer._step % (args.steps_per_generation * args.num_iterations)

    @property
    def cap(self) -> int:
        """The most tokens that a completion may have in this optimizer step."""
        caps = self.options.caps
        if caps:
            return caps[start(caps, self.trainer.state.global_step)]
        return self.trainer.args.max_completion_length

    @property
    def by_length(self) -> bool:
        """Whether the micro-batches of an update have completions of like length."""
        args = self.trainer.args
        window = args.gradient_accumulation_steps
        balanced = self.trainer.aux_loss_enabled  # a mixture of experts has a loss of its micro-batch
        return (
            self.options.by_length and window > 1 and args.steps_per_generation % window == 0 and not balanced
        )

    def minibatch(self, rows: list[Row]) -> Minibatch:
        """Return the completions of the next micro-batch; if a rollout is due, sample it for `rows`."""
        parts = self.trainer.args.steps_per_generation
        if not self.used or not self.kept:
            self.kept = [self.policy.shuffled(part) for part in self.cut(self.collect(rows))]
        elif self.options.reshuffle and self.used % parts == 0:
            self.kept = self.cut(minibatch.together(self.kept))
        return self.kept[self.trainer._step % parts]

    def cut(self, rollout: Minibatch) -> list[Minibatch]:
        """Return a rollout's shuffled micro-batches, with `by_length` sorted by length in an update."""
        args = self.trainer.args
        rollout = minibatch.shuffled(rollout)
        if self.by_length:
            updates = args.steps_per_generation // args.gradient_accumulation_steps
            rollout = minibatch.by_length(rollout, updates)
        return minibatch.cut(rollout, args.steps_per_generation)

    def step_tokens(self) -> Tensor | None:
        """Return the completion tokens of an optimizer step, (), as a mean over processes.

        DAPO (Eq. 8) and CISPO divide the loss by this number, and with micro-batches of like length the
        metrics and an entropy bonus are divided by it; otherwise the result is None. If a rollout has several
        steps, TRL divides by an equal share of the tokens of the rollout.
        """
        trainer = self.trainer
        if trainer.loss_type not in TOKEN_MEAN and not self.by_length:
            return None
        masks = [part.loss_mask for part in self.kept]
        tokens = step_tokens(masks, trainer._step, trainer.args.gradient_accumulation_steps)
        return trainer.accelerator.reduce(tokens, reduction="sum") / trainer.accelerator.num_processes

    # -- sampling ----------------------------------------------------------------------------------------

    def collect(self, rows: list[Row]) -> Minibatch:
        """Return a rollout with a completion of each row, and record it."""
        rollout, records = self.round(rows)
        self.record(self.gathered(records))
        return rollout

    def gathered(self, records: list[Record]) -> list[Record]:
        """Log the measures of a round's records, and return the records of all processes."""
        rows = self.measures.groups(records)
        if self.options.caps:
            self.measures.set("completions/cap", float(self.cap))
        return rows

    def round(self, rows: list[Row]) -> tuple[Minibatch, list[Record]]:
        """Sample and score a completion of each row. Returns the completions and their records."""
        sampled = self.sampler.sample([row["prompt"] for row in rows], self.cap)
        scorer, measures = self.scorer, self.measures
        ended = scorer.ended(sampled)
        measures.completions(sampled, ended)
        tokens = self.tokens(sampled, ended)
        old, reference = self.policy.sampled(tokens, sampled)
        scores = scorer.score(rows, sampled, ended)
        measures.rewards(scores, scorer.metrics())
        told = self.padded(sampled.logps, 0)
        batch = Minibatch(
            **vars(tokens),
            advantages=torch.zeros(len(rows), device=tokens.ids.device),
            old=old,
            ref=reference,
            sampled=told,
            correction=self.correction(tokens, old, told),
        )
        measures.sampler(batch)
        if self.options.learn_results:
            batch = replace(batch, own=None)
        batch = self.estimator.estimate(batch, scores)
        if self.options.old_logp_noise:
            batch = replace(batch, noise=self.noise(batch.completion_ids))
        self.rounds += 1
        self.sampled += len(rows) * self.trainer.accelerator.num_processes
        measures.set("samples", float(self.sampled))
        measures.advantages(batch)
        record_advantages(scores.records, batch)
        return batch, scores.records

    def tokens(self, sampled: Sampled, ended: Tensor) -> Tokens:
        """Return the sampled tokens as tensors. `ended`: (B,) of bool, whether each completion has ended.

        With `mask_truncated_completions` the mask of the other completions is 0.
        """
        pad_token = self.trainer.processing_class.pad_token_id
        prompts = self.padded(sampled.prompts, pad_token, left=True)
        prompt_mask = self.padded([[1] * len(ids) for ids in sampled.prompts], 0, left=True)
        completions = self.padded(sampled.completions, pad_token)
        mask = self.padded([[1] * len(ids) for ids in sampled.completions], 0)
        if self.trainer.mask_truncated_completions:
            mask = mask * ended[:, None].int()
        return Tokens(prompts, prompt_mask, completions, mask, self.padded(sampled.own, 1))

    def padded(self, values: Sequence[Sequence[Any]] | None, fill: int, left: bool = False) -> Any:
        """Return lists of numbers as a tensor, (batch, longest), padded with `fill`; None without lists.

        A None within a list becomes NaN.
        """
        if values is None:
            return None
        rows = [torch.tensor([torch.nan if x is None else x for x in row]) for row in values]
        multiple = self.trainer.pad_to_multiple_of
        table = pad(rows, fill, "left" if left else "right", pad_to_multiple_of=multiple)
        return table.to(self.trainer.accelerator.device)

    def correction(self, tokens: Tokens, old: Tensor | None, told: Tensor | None) -> Tensor | None:
        """Return the weights that correct for a vLLM sampler, (B, T) or (B, 1); None without correction."""
        args = self.trainer.args
        if not self.policy.corrects or old is None or told is None:
            return None
        low, high = args.vllm_importance_sampling_clip_min, args.vllm_importance_sampling_clip_max
        return correction(old, told, tokens.loss_mask, args.vllm_importance_sampling_mode, low, high)

    def noise(self, like: Tensor) -> Tensor:
        """Return Gaussian noise, shaped `like`, fixed by the seed, the process and the round."""
        accelerator = self.trainer.accelerator
        number = self.rounds * accelerator.num_processes + accelerator.process_index
        generator = torch.Generator().manual_seed(self.trainer.args.seed + EPOCH_STRIDE * (number + 1))
        return self.options.old_logp_noise * torch.randn(like.shape, generator=generator).to(like.device)

    def record(self, rows: list[Record]) -> None:
        """Append the completions of a rollout, from all processes, to completions.jsonl."""
        self.measures.without_groups()
        if self.options.log and self.trainer.accelerator.is_main_process:
            self.options.log.append(rows, self.trainer.num_generations)

    # -- resume ------------------------------------------------------------------------------------------

    def state(self) -> State:
        log = self.options.log
        return {
            "micro_step": self.trainer._step,
            "kept": [vars(part) for part in self.kept],
            "sampled": (self.sampled, self.rounds),
            "completions_bytes": log.flush() if log else 0,
        }

    def restore(self, state: State) -> None:
        self.trainer._step = state["micro_step"]
        device = self.trainer.accelerator.device
        self.kept = [minibatch.on_device(Minibatch(**part), device) for part in state["kept"]]
        self.sampled, self.rounds = state["sampled"]
        if self.options.log:
            self.options.log.cut(state["completions_bytes"])

    def begin_anew(self) -> None:
        """Remove what a killed run has left in the log of completions."""
        if self.options.log:
            self.options.log.cut(0)
