"""The metrics of a rollout's completions, rewards and loss in the log lines, by TRL's names.

TRL's trainer keeps a list of the values of each metric until the next log line, which shows their means.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from encore.learning.completions import Record, by_calls, by_correctness, by_domain
from encore.learning.entropy import EntropyBonus
from encore.learning.loss_metrics import loss_metrics
from encore.learning.minibatch import Minibatch, Tokens
from encore.learning.policy import Policy
from encore.learning.ratio_statistics import RatioStatistics
from encore.learning.resumable import State
from encore.learning.sampler_gap import SamplerGap
from encore.learning.samplers import Sampled
from encore.learning.scoring import Scores
from encore.objectives.advantages import of_groups, std_of_known
from encore.objectives.averages import completion_means
from encore.objectives.grpo import Batch, Terms
from encore.objectives.kl import kl
from encore.runtime.curves import FIFTH

# metrics that mean nothing if a prompt has one completion, or if nothing verifies the answers
OF_GROUPS = ("frac_reward_zero_std", "groups/all_correct", "groups/all_wrong", "groups/wrong_in_mixed")
OF_ANSWERS = ("accuracy", "length/correct", "length/incorrect", *OF_GROUPS)


class Measures:
    """The metrics of one of TRL's trainers since the last log line, and the sums from which they are made."""

    def __init__(self, trainer: Any, entropy_bonus: EntropyBonus, grouped: bool = True, clips: bool = True):
        """Make the metrics of `trainer`. `grouped`: advantages come from groups, not from a critic.

        `clips`: the loss comes from `objectives.grpo`, whose losses report where the clip cuts the gradient.
        """
        self.trainer, self.accelerator = trainer, trainer.accelerator
        self.ratios, self.gap, self.entropy_bonus = RatioStatistics(), SamplerGap(), entropy_bonus
        self.grouped, self.clips = grouped, clips

    @property
    def log(self) -> Any:
        """The values of each metric since the last log line, by name."""
        return self.trainer._metrics["train"]

    def add(self, name: str, value: float) -> None:
        """Add a value to the metric `name`; the log line shows the mean of its values."""
        self.log[name].append(value)

    def add_mean(self, name: str, value: Tensor) -> None:
        """Add the mean of a number over all processes; `value`: ()."""
        self.add(name, self.accelerator.gather(value.detach()).mean().item())

    def set(self, name: str, value: float) -> None:
        """Make the log line show the newest value of `name`, not a mean."""
        self.log[name] = [value]

    def positions(self, run: int, tokens: Tokens) -> None:
        """Add the positions that the policy ran over for each real token of prompts and completions."""
        self.add_mean("positions_per_token", run / tokens.mask.sum())

    # -- a round of completions ------------------------------------------------------------------------------

    def completions(self, sampled: Sampled, ended: Tensor) -> None:
        """Add the lengths of a round's prompts and completions, and the share of clipped completions.

        `ended`: (completions,) of bool, whether a completion's last token ends it.
        """
        device, state = self.accelerator.device, self.trainer.state
        prompts = torch.tensor([len(ids) for ids in sampled.prompts], device=device)
        lengths = torch.tensor([len(ids) for ids in sampled.said], device=device)
        prompts, lengths = self.accelerator.gather(prompts), self.accelerator.gather(lengths)
        ended = self.accelerator.gather(ended)
        state.num_input_tokens_seen += (prompts.sum() + lengths.sum()).item()
        self.set("num_tokens", state.num_input_tokens_seen)
        self.lengths("length", lengths)
        self.add("completions/clipped_ratio", (~ended).float().mean().item())
        self.lengths("terminated_length", lengths[ended] if ended.any() else lengths.new_zeros(1))

    def lengths(self, name: str, lengths: Tensor) -> None:
        """Add the mean, the minimum and the maximum of `lengths`, in tokens, (completions,)."""
        lengths = lengths.float()
        for kind, value in (("mean", lengths.mean()), ("min", lengths.min()), ("max", lengths.max())):
            self.add(f"completions/{kind}_{name}", value.item())

    def rewards(self, scores: Scores, told: dict[str, float]) -> None:
        """Add the rewards of a round, and the metrics that its reward functions have logged."""
        args = self.trainer.args
        for name, rewards in zip(scores.names, scores.rewards.T, strict=True):
            self.add(f"rewards/{name}/mean", rewards.nanmean().item())
            self.add(f"rewards/{name}/std", std_of_known(rewards, 0).item())
        totals = scores.totals.masked_fill(scores.rewards.isnan().all(dim=1), torch.nan)
        self.add("reward", totals.nanmean().item())
        self.add("reward_std", std_of_known(totals, 0).item())
        first = args.multi_objective_aggregation == "normalize_then_sum"
        _, std = of_groups(
            scores.rewards, scores.weights, self.trainer.num_generations, args.scale_rewards, first
        )
        flat = torch.isclose(std, torch.zeros_like(std))
        self.add("frac_reward_zero_std", flat.float().mean().item())
        for name, value in told.items():
            self.add(name, value)

    def staleness(self, versions: int) -> None:
        """Add the staleness of a rollout, in versions of the policy."""
        self.add("staleness/mean", versions)
        self.set("staleness/max", max([versions, *self.log["staleness/max"]]))

    def sampler(self, batch: Minibatch) -> None:
        """Add how far the sampler's log-probabilities are from the policy's, if the loss corrects for it."""
        if batch.correction is None:
            return
        assert batch.old is not None
        assert batch.sampled is not None
        mask = batch.loss_mask.bool()
        gap = (batch.old - batch.sampled).abs()[mask & ~batch.sampled.isnan()]
        whole = batch.correction.shape[1] == 1 != batch.time
        weights = batch.correction.flatten() if whole else batch.correction[mask]
        name = "sampling/sampling_logp_difference"
        self.over_processes(name, gap, {"mean": torch.mean, "max": torch.max})
        kinds: dict[str, Callable] = {"min": torch.min, "mean": torch.mean, "max": torch.max}
        self.over_processes("sampling/importance_sampling_ratio", weights, kinds)

    def over_processes(self, name: str, values: Tensor, kinds: Mapping[str, Callable]) -> None:
        """Add the metric `name`/KIND for each of `kinds`, a function such as the mean.

        The function is applied to the `values` of each process, then to the results of all processes.
        """
        for kind, measure in kinds.items():
            local = measure(values) if values.numel() else values.new_zeros(())
            self.add(f"{name}/{kind}", measure(self.accelerator.gather(local)).item())

    def advantages(self, batch: Minibatch) -> None:
        """Add the mean absolute advantage of a round."""
        size = batch.advantages.abs()
        if size.dim() > 1:
            mask = batch.loss_mask
            size = (size * mask).sum() / mask.sum().clamp(min=1)
        self.add_mean("advantage/abs", size.mean())

    def groups(self, records: Sequence[Record]) -> list[Record]:
        """Add the metrics of groups, domains and tool calls in a round; return all processes' records."""
        rows, size = gather_object(list(records)), self.trainer.num_generations
        for name, value in (by_correctness(rows, size) | by_domain(rows, size) | by_calls(rows)).items():
            self.add(name, value)
        return rows

    def without_groups(self) -> None:
        """Remove the metrics of groups and answers that mean nothing, unless advantages come from groups."""
        if self.grouped:
            return
        verified = "accuracy" in self.trainer.reward_func_names
        for name in (OF_GROUPS if self.trainer.num_generations == 1 else ()) if verified else OF_ANSWERS:
            self.log.pop(name, None)

    # -- a micro-batch ---------------------------------------------------------------------------------------

    def loss(
        self, minibatch: Minibatch, batch: Batch, entropy: Tensor, terms: Terms, used: int, policy: Policy
    ) -> None:
        """Add the metrics of a micro-batch's loss. `entropy`: (B, T).

        `used` is the number of micro-batches that have learned from the rollout before this one. The gap to
        a sampler with older weights is not measured.
        """
        args, state = self.trainer.args, self.trainer.state
        for name, value in loss_metrics(
            terms, batch, entropy.detach(), args, self.accelerator, self.clips
        ).items():
            self.add(name, value)
        if self.entropy_bonus:
            self.add_mean("policy_loss", terms.policy * batch.micro_batches)
            self.entropy_bonus.add(entropy, batch.counted, self.accelerator)
            self.add("entropy_coef", self.entropy_bonus.coef)
        logps, mask = batch.logp.detach(), batch.mask
        fresh = used < args.gradient_accumulation_steps and not policy.sampler.staleness
        if batch.sampled is not None and fresh:
            self.gap.add(batch.sampled, logps, mask, self.accelerator)
        old = logps if minibatch.old is None else minibatch.old  # log pi_old without the noise
        self.ratios.add(
            logps - batch.old,
            mask,
            terms.cut,
            self.accelerator,
            at_start=None if used or policy.old_samples else logps - old,
            counted=state.global_step + 1 > state.max_steps * (1 - FIFTH),
        )
        if not self.grouped:
            k2 = kl(logps, batch.old, "k2") * mask
            summed, tokens = self.accelerator.reduce(torch.stack([k2.sum(), mask.sum()]), reduction="sum")
            self.add("approx_kl", (summed / tokens.clamp(min=1)).item())
            self.add_mean("policy_loss", terms.loss * batch.micro_batches)

    def flush(self) -> None:
        """Add the metrics that are computed from the sums since the last log line, and clear the sums."""
        for name, value in (self.ratios.flush() | self.gap.flush()).items():
            self.add(name, value)

    # -- resume ----------------------------------------------------------------------------------------------

    def state(self) -> State:
        return {
            "unlogged": {name: list(values) for name, values in self.log.items()},
            "ratios": self.ratios.state(),
            "gap": self.gap.sums,
            "entropy_bonus": self.entropy_bonus.state(),
        }

    def restore(self, state: State) -> None:
        self.log.clear()
        self.log.update(state["unlogged"])
        self.ratios.restore(state["ratios"])
        self.gap.sums = state["gap"]
        self.entropy_bonus.restore(state["entropy_bonus"])


def record_advantages(records: Sequence[Record], batch: Minibatch) -> None:
    """Write each completion's advantage into its record; if each token has an advantage, write the mean."""
    advantages = batch.advantages
    if advantages.dim() > 1:
        advantages = completion_means(advantages, batch.completion_mask)
    for row, advantage in zip(records, advantages.tolist(), strict=True):
        row["advantage"] = advantage
