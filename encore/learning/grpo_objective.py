r"""TRL's GRPOTrainer with the loss of `objectives.grpo`, and a stage's keys that TRL has no argument for.

| key              | what becomes of it                                                                     |
|------------------|----------------------------------------------------------------------------------------|
| advantage        | A is one of `objectives.advantages`, (batch,), or `process`, (batch, time)             |
| importance_ratio | the ratio is `none` or `sequence_token` of `objectives.grpo.importance_ratio`          |
| old_logp_noise   | Gaussian noise is added to log \pi_old, as of a sampler that differs from the policy   |
| learn_results    | what a tool said is in the loss too, as if the policy had written it                   |

DAPO Eq. 8 and CISPO divide by the number of completion tokens in an optimizer step. Where a rollout has
several steps, TRL divides by an equal share of the tokens of the rollout; here the tokens of the step count.
"""

from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import gather_object

from encore.learning.entropy import EntropyBonus
from encore.learning.loss_metrics import loss_metrics
from encore.learning.old_logps import OLD, REFERENCE, OldLogProbs
from encore.learning.ratio_statistics import RatioStatistics
from encore.learning.resume import EPOCH_STRIDE, ExactResume
from encore.learning.sampler_gap import SAMPLED, SamplerGap
from encore.models.language_model import disable_dropout
from encore.objectives import grpo, process_supervision
from encore.objectives.advantages import OF_GROUP, MovingAverage, total
from encore.objectives.averages import step_tokens
from encore.objectives.loss_types import TOKEN_MEAN, check_window
from encore.rewards.rules import text
from encore.rewards.step_rewards import Reader
from encore.runtime.curves import FIFTH
from encore.worlds.protocol import Problem

NOISE = "old_logp_noise"  # of a batch, (batch, time)
STEP_TOKENS = "step_tokens"  # of a batch: tokens of the optimizer step, over the number of processes


@dataclass(frozen=True)
class Extension:
    """The keys of a recipe's stage that extend the objective; by default it is TRL's."""

    advantage: str | None = None
    importance_ratio: str | None = None
    old_logp_noise: float = 0.0  # standard deviation, nats
    read_steps: Reader | None = None  # for advantage `process`
    learn_results: bool = False


class Objective(ExactResume, OldLogProbs):
    """GRPOTrainer with our loss, an `extension` of it, and metrics of advantages and importance ratios."""

    extension = Extension()
    model: Any
    num_generations: Any
    _step: int
    _metrics: Any
    _buffered_inputs: Any
    sampled = 0  # completions so far, of all processes and rounds
    rounds = 0  # calls that sampled them

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.args.disable_dropout:  # TRL leaves it on in attention, and ratios would start away from 1
            disable_dropout(self.model)
            if self.ref_model is not None:
                disable_dropout(self.ref_model)
        self.ratios = RatioStatistics()
        self.gap = SamplerGap()
        self.entropy_bonus = EntropyBonus(self.args)
        self.baseline = MovingAverage()
        check_window(self.loss_type, self.args.gradient_accumulation_steps, self.args.steps_per_generation)

    def held_state(self) -> dict[str, Any]:
        return {
            **super().held_state(),
            "ratios": self.ratios.state(),
            "gap": self.gap.sums,
            "entropy_bonus": self.entropy_bonus.state(),
            "baseline": (self.baseline.total, self.baseline.count),
            "sampled": (self.sampled, self.rounds),
        }

    def restore_held_state(self, state: dict[str, Any]) -> None:
        super().restore_held_state(state)
        self.ratios.restore(state["ratios"])
        self.gap.sums = state.get("gap", self.gap.sums)  # a checkpoint of an earlier version has none
        if "entropy_bonus" in state:  # a checkpoint of an earlier version has none
            self.entropy_bonus.restore(state["entropy_bonus"])
        self.baseline = MovingAverage(*state["baseline"])
        self.sampled, self.rounds = state["sampled"]

    # -- what is fixed when a rollout is sampled ----------------------------------------------------------

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        self._scored = rewards, inputs, completions, completion_ids_list
        return rewards

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        if not self.model.training:
            return batch
        if self.extension.learn_results:
            del batch["tool_mask"]
        self.set_truncated(batch)
        self.set_advantages(batch)
        if self.extension.old_logp_noise:
            batch[NOISE] = self.noise(batch["completion_ids"])
        self.rounds += 1
        self.sampled += len(inputs) * self.accelerator.num_processes
        self._metrics["train"]["samples"] = [float(self.sampled)]  # the newest, where TRL would average
        size = batch["advantages"].abs()
        if size.dim() > 1:
            mask = loss_mask(batch)
            size = (size * mask).sum() / mask.sum().clamp(min=1)
        self._metrics["train"]["advantage/abs"].append(self.accelerator.gather(size.mean()).mean().item())
        return batch

    def set_truncated(self, batch: dict[str, Any]) -> None:
        """Count completions as cut by whether their last token ends them.

        TRL takes a padding token at the cap, which a policy may sample, for an end too.
        """
        ends = self.eos_token_ids
        cut = torch.tensor([ids[-1] not in ends for ids in self._scored[3]], device=self.accelerator.device)
        shares = self._metrics["train"]["completions/clipped_ratio"]
        shares[-1] = self.accelerator.gather(cut).float().mean().item()
        if self.mask_truncated_completions:
            batch["completion_mask"] = batch["completion_mask"] * (~cut)[:, None].int()

    def set_advantages(self, batch: dict[str, Any]) -> None:
        """Replace TRL's advantages of a rollout by the extension's, if it has any."""
        if self.extension.advantage:
            batch["advantages"] = self.own_advantages(batch["completion_ids"].shape[1])

    def own_advantages(self, width: int) -> torch.Tensor:
        """The extension's advantages of this process's part of the rollout: (batch,) or (batch, width)."""
        rewards, inputs, _, _ = self._scored  # (all processes' batch, functions)
        own = self.own_rows(len(inputs))
        if self.extension.advantage == "process":
            steps = gather_object(self.steps(self.accuracy(rewards)[own].tolist()))
            return process_supervision.advantages(steps, self.num_generations, width)[own].to(rewards.device)
        totals = total(rewards, self.reward_weights)
        if self.extension.advantage == "moving_average":
            advantages = self.baseline.advantages(totals)
            self.baseline = self.baseline.after(totals)
            return advantages[own]
        rewarded = self.accuracy(rewards) if self.extension.advantage == "positive" else totals
        groups = rewarded.view(-1, self.num_generations)
        return OF_GROUP[str(self.extension.advantage)](groups).flatten()[own]

    def accuracy(self, rewards: torch.Tensor) -> torch.Tensor:
        """The accuracy rewards (batch,) among all: (batch, functions)."""
        return rewards[:, self.reward_func_names.index("accuracy")]

    def own_rows(self, rows: int) -> slice:
        """This process's rows of a batch that has `rows` of every process."""
        start = self.accelerator.process_index * rows
        return slice(start, start + rows)

    def steps(self, accuracy: list[float]) -> list[process_supervision.Steps]:
        """The steps of this process's completions; `accuracy` has the accuracy reward of each."""
        _, inputs, completions, ids = self._scored
        assert self.extension.read_steps is not None
        problems = [
            Problem(row["question"], row["answer"], row.get("difficulty", 0), row.get("prefill") or "")
            for row in inputs
        ]
        return [
            self.extension.read_steps(problem, text(completion), tokens, right)
            for problem, completion, tokens, right in zip(problems, completions, ids, accuracy, strict=True)
        ]

    def noise(self, like: torch.Tensor) -> torch.Tensor:
        """Gaussian noise in the shape of `like`, fixed by the seed, the rollout's number and the process."""
        number = self.rounds * self.accelerator.num_processes + self.accelerator.process_index
        generator = torch.Generator().manual_seed(self.args.seed + EPOCH_STRIDE * (number + 1))
        return self.extension.old_logp_noise * torch.randn(like.shape, generator=generator).to(like.device)

    def _prepare_inputs(self, generation_batch):
        inputs = super()._prepare_inputs(generation_batch)
        if not self.model.training or self.loss_type not in TOKEN_MEAN:
            return inputs
        masks = [loss_mask(part) for part in self._buffered_inputs]
        tokens = step_tokens(masks, self._step, self.args.gradient_accumulation_steps)
        tokens = self.accelerator.reduce(tokens, reduction="sum")
        return {**inputs, STEP_TOKENS: tokens / self.accelerator.num_processes}

    # -- the loss ----------------------------------------------------------------------------------------

    def _compute_loss(self, model, inputs):
        logps, entropy, aux_loss = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1),
            torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1),
            inputs["completion_ids"].shape[1],
            compute_entropy=True,
            compute_aux_loss=self.aux_loss_enabled,
        )
        batch = self.loss_batch(inputs, logps, entropy)
        terms = grpo.loss(batch, self.args, self.extension.importance_ratio or self.importance_sampling_level)
        self.measure_loss(inputs, batch, entropy, terms)
        if aux_loss is None:
            return terms.loss
        self._metrics["train"]["aux_loss"].append(self.accelerator.gather(aux_loss).mean().item())
        return terms.loss + self.router_aux_loss_coef * aux_loss / batch.micro_batches

    def loss_batch(self, inputs: dict[str, Any], logps: torch.Tensor, entropy: torch.Tensor) -> grpo.Batch:
        """What the loss is computed from. `logps` and `entropy` are of the policy now, (batch, time)."""
        mask, advantages = loss_mask(inputs), inputs["advantages"]
        old = inputs.get(OLD, logps.detach())
        kept = self.args.top_entropy_quantile
        return grpo.Batch(
            logp=logps,
            old=old + inputs[NOISE] if NOISE in inputs else old,
            advantage=advantages if advantages.dim() > 1 else advantages[:, None],
            mask=mask,
            cap=self.max_completion_length,
            step_tokens=inputs.get(STEP_TOKENS, mask.sum()),
            micro_batches=self.current_gradient_accumulation_steps,
            ref=inputs[REFERENCE] if self.beta else None,
            sampled=inputs.get(SAMPLED),
            correction=inputs.get("importance_sampling_ratio"),
            uncertain=self.get_high_entropy_mask(entropy, mask, 1 - kept) if kept < 1 else None,
            entropy=entropy if self.entropy_bonus else None,
            entropy_coef=self.entropy_bonus.weight,
        )

    def measure_loss(
        self, inputs: dict[str, Any], batch: grpo.Batch, entropy: torch.Tensor, terms: grpo.Terms
    ) -> None:
        """Take a micro-batch into the metrics of the log line."""
        log = self._metrics["train"]
        for name, value in loss_metrics(terms, batch, entropy.detach(), self.args, self.accelerator).items():
            log[name].append(value)
        if self.entropy_bonus:
            policy = self.accelerator.gather(terms.policy * batch.micro_batches)
            log["policy_loss"].append(policy.mean().item())
            counted = batch.mask if batch.uncertain is None else batch.mask * batch.uncertain
            self.entropy_bonus.add(entropy, counted, self.accelerator)
            log["entropy_coef"].append(self.entropy_bonus.coef)
        logps, mask = batch.logp.detach(), batch.mask
        used = self._step % (self.args.steps_per_generation * self.num_iterations)  # micro-steps
        if batch.sampled is not None and used < self.args.gradient_accumulation_steps:
            self.gap.add(batch.sampled, logps, mask, self.accelerator)
        self.ratios.add(
            logps - batch.old,
            mask,
            terms.cut,
            self.accelerator,
            at_start=None if used else logps - inputs.get(OLD, logps),
            counted=self.state.global_step + 1 > self.state.max_steps * (1 - FIFTH),
        )

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if self.model.training:
            for name, value in (self.ratios.flush() | self.gap.flush()).items():
                self._metrics["train"][name].append(value)
        super().log(logs, start_time)


def loss_mask(batch: dict[str, Any]) -> torch.Tensor:
    """(batch, time): 1 at the tokens in the loss."""
    return batch["completion_mask"] * batch.get("tool_mask", 1)
