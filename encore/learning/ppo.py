r"""PPO with a critic (arXiv 1707.06347, as in InstructGPT, arXiv 2203.02155 §3.5), on TRL's GRPOTrainer.

TRL samples, keeps the rollout for several updates and computes the clipped policy loss from each token's
advantage. This module adds the reference, the critic, the KL in the reward, GAE, the value loss and the
pretraining loss of PPO-ptx. With w_t = \pi(a_t)/\pi_old(a_t), over the T tokens of an optimizer step,

    L = 1/T \sum_t [-min(w_t A_t, clip(w_t, 1 - \epsilon, 1 + \epsilon) A_t) + c_V L_V,t] - \gamma log \pi(x)

`objectives.gae` has A and the rewards, `objectives.losses` L_V, `ptx` the last term. Policy and critic share
an optimizer, in which the critic has parameter groups with a rate of its own; their gradients are clipped
separately.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from trl.trainer.utils import add_fused_lm_head, shuffle_sequence_dict, split_tensor_dict

from encore.learning.grpo import GRPO
from encore.learning.grpo_objective import OLD, STEP_TOKENS, loss_mask
from encore.learning.ptx import Ptx
from encore.learning.reference import as_policy
from encore.models.critic import Critic, learnt, set_learnt, token_values
from encore.models.language_model import disable_dropout
from encore.models.packing import piece_rows
from encore.models.sharded import whole
from encore.objectives import gae, losses
from encore.objectives.advantages import total
from encore.objectives.kl import adapted_coefficient, kl

# metrics that mean nothing where a prompt has one completion, and where nothing verifies the answers
OF_GROUPS = ("frac_reward_zero_std", "groups/all_correct", "groups/all_wrong", "groups/wrong_in_mixed")
OF_ANSWERS = ("accuracy", "length/correct", "length/incorrect", *OF_GROUPS)


class PPO(GRPO):
    """GRPOTrainer that learns by PPO.

    `reference`: the causal language model that the KL is measured to, None for the policy without its
    adapters; `ptx`: pretraining documents.
    """

    postponed = False  # old log-probabilities, which the rewards need

    def __init__(self, *args, critic: Critic, reference: Any = None, ptx: Ptx | None = None, **kwargs):
        super().__init__(*args, **kwargs)
        if reference is not None:
            disable_dropout(reference)
            add_fused_lm_head(reference, temperature=self.temperature)
            self.ref_model = self.placed(reference.requires_grad_(False), evaluation_mode=True).eval()
        if self.args.gradient_checkpointing:
            critic.backbone.gradient_checkpointing_enable(self.args.gradient_checkpointing_kwargs)
        self.critic: Any = self.placed(critic)
        self.ptx = ptx
        self.kl_coef: float = self.args.kl_coef

    # -- the critic's part of the trainer ----------------------------------------------------------------

    def placed(self, model: Any, evaluation_mode: bool = False) -> Any:
        """A model beside the policy, on this process's device, or spread as the policy will be."""
        if not self.is_fsdp_enabled:
            return self.accelerator.prepare_model(model, evaluation_mode=evaluation_mode)
        return as_policy(model, self.accelerator)

    def create_optimizer(self, model=None):
        if self.optimizer is not None:
            return super().create_optimizer(model)
        optimizer = super().create_optimizer(model)
        if not self.is_fsdp_enabled:
            self.add_critic(optimizer)
        return optimizer

    def create_scheduler(self, num_training_steps, optimizer=None):
        if self.is_fsdp_enabled:
            # accelerate has replaced the policy's weights in it by their shards, and knows no others
            prepared: Any = self.optimizer
            self.add_critic(prepared.optimizer)
        return super().create_scheduler(num_training_steps, optimizer)

    def add_critic(self, optimizer: torch.optim.Optimizer) -> None:
        """Have `optimizer` learn the critic's weights too, at a rate of their own."""
        critic, rate = self.accelerator.unwrap_model(self.critic), self.args.critic_learning_rate
        decayed = set(self.get_decay_parameter_names(critic))
        for decays, decay in ((True, self.args.weight_decay), (False, 0.0)):
            weights = [
                w for name, w in critic.named_parameters() if w.requires_grad and (name in decayed) is decays
            ]
            optimizer.add_param_group({"params": weights, "lr": rate, "weight_decay": decay})
        # of adapters all decay: torch cannot resume sharded groups of which some are empty
        optimizer.param_groups = [group for group in optimizer.param_groups if group["params"]]
        # transformers clears the gradients of its own model only
        optimizer.register_step_post_hook(lambda *_: self.critic.zero_grad())

    @contextmanager
    def beside_policy(self) -> Iterator[None]:
        """For the time of saving or loading shards: policy and critic as one model, as of one optimizer."""
        policy = self.model
        if self.is_fsdp_enabled:
            self.model = nn.ModuleDict({"policy": policy, "critic": self.critic})
        try:
            yield
        finally:
            self.model = policy

    def _save_optimizer_and_scheduler(self, output_dir):
        with self.beside_policy():  # of shards it saves the weights as well
            super()._save_optimizer_and_scheduler(output_dir)

    def _load_from_checkpoint(self, resume_from_checkpoint, model=None):
        with self.beside_policy():
            super()._load_from_checkpoint(
                resume_from_checkpoint, self.model if self.is_fsdp_enabled else model
            )

    def _load_optimizer_and_scheduler(self, checkpoint):
        with self.beside_policy():
            super()._load_optimizer_and_scheduler(checkpoint)

    def _get_grad_norm(self, model, grad_norm=None):
        # called after the policy's gradients were unscaled and clipped, and before the optimizer's step
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)
        limit = self.args.max_grad_norm or float("inf")
        own = whole(nn.utils.clip_grad_norm_(self.critic.parameters(), limit))
        self.require_finite("grad_norm/critic", own)
        self._metrics["train"]["grad_norm/critic"].append(own.item())
        return norm

    def held_state(self) -> dict[str, Any]:
        critic = self.accelerator.unwrap_model(self.critic)
        own = None if self.is_fsdp_enabled else learnt(critic)  # else it is saved beside the policy
        return {**super().held_state(), "critic": own, "kl_coef": self.kl_coef}

    def restore_held_state(self, state: dict[str, Any]) -> None:
        super().restore_held_state(state)
        if state["critic"] is not None:
            set_learnt(self.accelerator.unwrap_model(self.critic), state["critic"])
        self.kl_coef = state["kl_coef"]

    # -- rollouts ----------------------------------------------------------------------------------------

    def _prepare_inputs(self, generation_batch):
        again = self._step % (self.args.steps_per_generation * self.num_iterations) != 0
        if (
            self.model.training
            and self.args.reshuffle
            and self._buffered_inputs is not None
            and again
            and self._step % self.args.steps_per_generation == 0
        ):
            parts = self._buffered_inputs
            rollout: Any = {
                name: torch.cat([part[name] for part in parts]) if value.dim() else value
                for name, value in parts[0].items()
            }
            shuffled: Any = shuffle_sequence_dict(rollout)
            self._buffered_inputs = split_tensor_dict(shuffled, len(parts))
        return super()._prepare_inputs(generation_batch)

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        verified = "accuracy" in self.reward_func_names
        for name in (OF_GROUPS if self.num_generations == 1 else ()) if verified else OF_ANSWERS:
            self._metrics["train" if self.model.training else "eval"].pop(name, None)
        return batch

    def require_scored(self, rewards: torch.Tensor) -> None:
        """Stop unless the rewards that have a weight are finite. `rewards`: (batch, functions)."""
        for name, weight, column in zip(
            self.reward_func_names, self.reward_weights.tolist(), rewards.T, strict=True
        ):
            if weight:
                self.require_finite(f"reward {name}", column.sum())

    def set_advantages(self, batch: dict[str, Any]) -> None:
        """Put advantages, values and returns, all (batch, time), into a rollout of this process."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        real = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        mask, keep, size = loss_mask(batch), batch["completion_ids"].shape[1], self.args.train_batch_size
        with torch.no_grad():
            if OLD not in batch:  # TRL needs none where a rollout is one update
                batch[OLD] = self._get_per_token_logps_and_entropies(self.model, ids, real, keep, size)[0]
            reference = self.reference_logps(ids, real, keep, size)
            values = self.values(batch)
        log_ratio = (batch[OLD] - reference) * mask  # (batch, time)
        scores, ended = self.scores(len(ids)), self.ended(batch)
        scores = gae.end_scores(scores, ended, self.args.missing_eos_penalty, self.args.missing_eos_score)
        rewards = gae.token_rewards(scores.to(log_ratio.dtype), log_ratio, mask, self.kl_coef)
        if self.args.whiten_rewards:
            rewards = gae.whiten(rewards, mask, shift_mean=False, summed=self.summed)
        advantages = gae.advantages(rewards, values, mask, self.args.gamma, self.args.lam)
        batch["values"], batch["returns"] = values, advantages + values
        if self.args.whiten_advantages:
            advantages = gae.whiten(advantages, mask, summed=self.summed)
        batch["advantages"] = advantages
        sequence_kl = log_ratio.sum(dim=1)  # (batch,), nats
        for row, own in zip(self._rollout_rows, sequence_kl.tolist(), strict=True):
            row["kl"] = own
        self.measure(scores, sequence_kl, batch, mask)

    def reference_logps(self, *rollout: Any) -> torch.Tensor:
        """(batch, time): the reference's, or where there is none those of the policy without its adapters."""
        if self.ref_model is not None:
            return self._get_per_token_logps_and_entropies(self.ref_model, *rollout)[0]
        with self.accelerator.unwrap_model(self.model).disable_adapter():
            return self._get_per_token_logps_and_entropies(self.model, *rollout)[0]

    def scores(self, rows: int) -> torch.Tensor:
        """(rows,): the weighted rewards of this process's completions."""
        rewards = self._scored[0]  # (all processes' batch, functions)
        return total(rewards, self.reward_weights)[self.own_rows(rows)]

    def ended(self, batch: dict[str, Any]) -> torch.Tensor:
        """(batch,) of bool: whether a completion's last token ends it."""
        last = (batch["completion_mask"].sum(dim=1) - 1).clamp(min=0)
        tokens = batch["completion_ids"].gather(1, last[:, None])[:, 0]
        return torch.isin(tokens, torch.tensor(list(self.eos_token_ids), device=tokens.device))

    def values(self, batch: dict[str, Any]) -> torch.Tensor:
        """(batch, time): the critic's present values; at most a micro-batch's rows are run at a time."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        real = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        # several processes must call the network equally often
        most = len(ids) if self.accelerator.num_processes > 1 else piece_rows(len(ids))
        rows, keep = min(most, self.args.train_batch_size), batch["completion_ids"].shape[1]
        with self.accelerator.autocast():
            return token_values(self.critic, ids, real, keep, rows)

    def summed(self, value: torch.Tensor) -> torch.Tensor:
        return self.accelerator.reduce(value, reduction="sum")

    def measure(
        self, scores: torch.Tensor, sequence_kl: torch.Tensor, batch: dict[str, Any], mask: torch.Tensor
    ) -> None:
        """Log a rollout; adapt the KL coefficient if it has a target. `scores`, `sequence_kl`: (batch,)."""
        log = self._metrics["train"]
        all_scores, all_kl = self.accelerator.gather(scores), self.accelerator.gather(sequence_kl)
        mean_kl = all_kl.double().mean().item()
        log["kl"].append(mean_kl)
        log["kl_coef"].append(self.kl_coef)
        log["score"].append(all_scores.double().mean().item())
        log["objective"].append((all_scores - self.kl_coef * all_kl).double().mean().item())
        explained = gae.explained_variance(batch["values"], batch["returns"], mask)
        log["explained_variance"].append(
            self.accelerator.gather(torch.tensor(explained, device=mask.device)).mean().item()
        )
        if self.args.kl_target is not None:
            self.kl_coef = adapted_coefficient(self.kl_coef, mean_kl, self.args.kl_target, self.args.kl_gain)

    # -- the loss ----------------------------------------------------------------------------------------

    def _compute_loss(self, model, inputs):
        loss = super()._compute_loss(model, inputs)
        # a loss is a mean over the tokens of an optimizer step, to which each micro-batch adds its part
        parts = self.current_gradient_accumulation_steps
        self.log_loss("policy_loss", loss * parts)
        value = self.value_loss(inputs)
        self.log_loss("value_loss", value * parts)
        loss = loss + self.args.vf_coef * value
        if self.ptx:
            number = self._step * self.accelerator.num_processes + self.accelerator.process_index
            with self.accelerator.autocast():
                pretraining = self.ptx.loss(model, number)
            self.log_loss("ptx_loss", pretraining)
            loss = loss + self.ptx.coefficient * pretraining / parts
        return loss

    def value_loss(self, inputs: dict[str, Any]) -> torch.Tensor:
        """This micro-batch's part of the mean value loss over the tokens of an optimizer step."""
        mask, values = loss_mask(inputs), self.values(inputs)
        terms, cut = losses.value_terms(
            values, inputs["values"], inputs["returns"], self.args.cliprange_value
        )
        counts = self.summed(torch.stack([(cut * mask).sum(), mask.sum()]))
        self._metrics["train"]["value_clip_fraction"].append((counts[0] / counts[1].clamp(min=1)).item())
        return (terms * mask).sum() / inputs[STEP_TOKENS].clamp(min=1)

    def log_loss(self, name: str, value: torch.Tensor) -> None:
        self._metrics["train"][name].append(self.accelerator.gather(value.detach()).mean().item())

    def measure_loss(self, inputs, batch, entropy, terms) -> None:
        super().measure_loss(inputs, batch, entropy, terms)
        k2 = kl(batch.logp.detach(), batch.old, "k2") * batch.mask
        summed, tokens = self.summed(torch.stack([k2.sum(), batch.mask.sum()]))
        self._metrics["train"]["approx_kl"].append((summed / tokens.clamp(min=1)).item())
