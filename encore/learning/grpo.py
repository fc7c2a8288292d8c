"""TRL's GRPOTrainer with exact resume, a record of every completion, and metrics split by correctness.

TRL keeps a rollout in memory for several updates, counts micro-steps, takes prompts in the first epoch's
order when it resumes, and loads the reference model from where it first was. Its checkpoints hold none of
this; ours do.
"""

import math
from typing import Any

import torch
from accelerate.utils import gather_object
from trl.trainer import grpo_trainer
from trl.trainer.utils import RepeatSampler

from encore.data.token_ids import prompt_ids
from encore.learning.completions import CompletionsLog, by_calls, by_correctness, by_domain
from encore.learning.grpo_objective import Objective
from encore.learning.reference import by_layers
from encore.learning.resume import EPOCH_STRIDE
from encore.learning.tiles import narrow_tiles
from encore.learning.turns import own_part
from encore.models import lora
from encore.models.sharded import load_own_weights, own_weights
from encore.objectives.advantages import total
from encore.objectives.averages import completion_means
from encore.objectives.caps import Caps, start
from encore.rewards.domains import check_routed, split
from encore.runtime import gpus
from encore.sampling.turns import CALLS, TURNS

KEPT = ("answer", "difficulty", "domain", *CALLS, TURNS)  # columns that completions.jsonl has


class PromptSampler(RepeatSampler):
    """TRL's sampler, with an order fixed by the number of the epoch; in epoch 0 it is TRL's order."""

    epoch = 0
    seed: int

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self):
        if self.shuffle:
            self.generator.manual_seed(self.seed + EPOCH_STRIDE * self.epoch)
        return super().__iter__()


class GRPO(Objective):
    """GRPOTrainer, resumable at any step of a rollout; `rollouts` receives every completion."""

    args: Any
    ref_model: Any
    rollouts: CompletionsLog | None = None
    caps: Caps | None = None  # where the cap of completions rises in mid-run

    def __init__(self, *args, **kwargs):
        with by_layers(grpo_trainer):
            super().__init__(*args, **kwargs)

    def _get_train_sampler(self, dataset=None):
        plain: Any = super()._get_train_sampler(dataset)
        return PromptSampler(
            data_source=plain.data_source,
            mini_repeat_count=plain.mini_repeat_count,
            batch_size=plain.batch_size,
            repeat_count=plain.repeat_count,
            shuffle=plain.shuffle,
            seed=plain.seed,
        )

    def train(self, *args, **kwargs):
        if gpus.sharded():
            # has `generate` of transformers go on until all processes have ended, as they share each layer
            lora.below(self.model)._is_fsdp_managed_module = True
        with narrow_tiles(self.model):
            return super().train(*args, **kwargs)

    # -- resume ------------------------------------------------------------------------------------------

    def held_state(self) -> dict[str, Any]:
        synced = self.ref_model is not None and self.args.sync_ref_model
        return {
            **super().held_state(),
            "micro_step": self._step,
            "rollout": self._buffered_inputs,
            "unlogged": {name: list(values) for name, values in self._metrics["train"].items()},
            "reference": own_weights(self.ref_model) if synced else None,
            "completions_bytes": self.rollouts.flush() if self.rollouts else 0,
        }

    def restore_held_state(self, state: dict[str, Any]) -> None:
        super().restore_held_state(state)
        self._step = state["micro_step"]
        self._buffered_inputs = self._to_device(state["rollout"])
        self._metrics["train"].clear()
        self._metrics["train"].update(state["unlogged"])
        if state["reference"] is not None:
            load_own_weights(self.ref_model, state["reference"])
        if self.rollouts:
            self.rollouts.cut(state["completions_bytes"])

    def begin_anew(self) -> None:
        super().begin_anew()
        if self.rollouts:
            self.rollouts.cut(0)

    def _to_device(self, rollout: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        device = self.accelerator.device
        return rollout and [
            {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in part.items()}
            for part in rollout
        ]

    # -- rollouts ----------------------------------------------------------------------------------------

    def _prepare_inputs(self, generation_batch):
        if self.caps and self.model.training:
            self.set_cap(self.caps[start(self.caps, self.state.global_step)])
        return super()._prepare_inputs(generation_batch)

    def _tokenize_prompts(self, prompts):
        # TRL would put a second BOS before a text of a chat template
        return prompt_ids(prompts, self.processing_class), None, {}

    def set_cap(self, cap: int) -> None:
        """Let completions have at most `cap` tokens, whatever samples them."""
        self.max_completion_length = cap
        if self.use_vllm:
            self.vllm_generation.max_completion_length = cap
        else:
            self.generation_config.max_new_tokens = cap
            self.generation_kwargs["max_new_tokens"] = cap

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        check_routed(self.reward_func_names, inputs)
        said, completion_ids_list = own_part(inputs, completions, completion_ids_list, self.processing_class)
        rewards = super()._calculate_rewards(inputs, prompts, said, completion_ids_list)
        self.require_scored(rewards)
        # rows of this process; `rewards` has those of all processes: (batch, functions)
        own = rewards[self.own_rows(len(prompts))]
        self.require_judged(own, inputs)
        totals = total(own, self.reward_weights).tolist()
        self._rollout_rows = [
            {
                "step": self.state.global_step + 1,
                "prompt": prompt,
                "completion": completion,
                **{key: row[key] for key in KEPT if key in row},
                "tokens": len(ids),
                "eos": ids[-1] in self.eos_token_ids,
                "reward": reward,
                "rewards": {
                    name: None if math.isnan(value) else value
                    for (name, domain), value in zip(map(split, self.reward_func_names), values, strict=True)
                    if domain in ("", row.get("domain"))
                },
            }
            for row, prompt, completion, ids, reward, values in zip(
                inputs, prompts, completions, completion_ids_list, totals, own.tolist(), strict=True
            )
        ]
        return rewards

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        if self.model.training:
            advantages = batch["advantages"]
            if advantages.dim() > 1:  # of each token: their mean
                advantages = completion_means(advantages, batch["completion_mask"])
            for row, advantage in zip(self._rollout_rows, advantages.tolist(), strict=True):
                row["advantage"] = advantage
            rows = gather_object(self._rollout_rows)
            measured = by_correctness(rows, self.num_generations) | by_domain(rows, self.num_generations)
            measured |= by_calls(rows)
            for name, value in measured.items():
                self._metrics["train"][name].append(value)
            if self.caps:  # the newest, where TRL would average
                self._metrics["train"]["completions/cap"] = [float(self.max_completion_length)]
            self.record(rows)
        return batch

    def record(self, rows: list[dict[str, Any]]) -> None:
        """Append the completions of a rollout, those of all processes, to completions.jsonl."""
        if self.rollouts and self.accelerator.is_main_process:
            self.rollouts.append(rows, self.num_generations)

    def require_scored(self, rewards: torch.Tensor) -> None:
        """Stop unless every completion has a finite reward. `rewards`: (batch, functions), NaN for none."""
        for name, column in zip(self.reward_func_names, rewards.T, strict=True):
            if torch.isinf(column).any():
                self.require_finite(f"reward {name}", float("inf"))
        if rewards.isnan().all(dim=1).any():
            self.require_finite("reward", float("nan"))

    def require_judged(self, rewards: torch.Tensor, inputs: list[dict[str, Any]]) -> None:
        """Stop where a learned reward is NaN, which TRL would take for None: no reward.

        `rewards`: (batch, functions), of this process's rows `inputs`.
        """
        for column, name in enumerate(self.reward_func_names):
            reward, domain = split(name)
            if reward == "reward_model":
                own = [i for i, row in enumerate(inputs) if domain in ("", row.get("domain"))]
                lost = rewards[own, column].isnan().any()
                if self.accelerator.gather(lost).any():
                    self.require_finite(f"reward {name}", float("nan"))
