"""A critic that learns beside the policy, by an optimizer of its own."""

from typing import Any

from torch import Tensor, nn
from transformers import TrainerCallback, get_scheduler

from encore.learning.measures import Measures
from encore.learning.minibatch import Minibatch
from encore.learning.reference import placed
from encore.learning.resumable import State, stop_unless_finite
from encore.models.critic import Critic, learnt, set_learnt, token_values
from encore.models.sharded import load_own_state, own_state, whole
from encore.objectives import losses
from encore.objectives.grpo import Batch
from encore.recipe.grpo_args import PpoArgs
from encore.recipe.portion import piece_rows


class LearningCritic(TrainerCallback):
    """A critic with its value loss and its optimizer, which makes a step whenever the policy's does."""

    def __init__(self, critic: Critic, ppo: PpoArgs, trainer: Any, measures: Measures):
        """Make a critic; callbacks of `trainer` call its steps."""
        self.trainer, self.args, self.measures, self.ppo = trainer, trainer.args, measures, ppo
        if self.args.gradient_checkpointing:
            critic.backbone.gradient_checkpointing_enable(self.args.gradient_checkpointing_kwargs)
        self.model: Any = placed(critic, trainer)
        optimizer, options = trainer.get_optimizer_cls_and_kwargs(self.args, critic)
        options["lr"] = ppo.critic_learning_rate or self.args.learning_rate
        self.optimizer: Any = optimizer(self.groups(), **options)
        self.scheduler: Any = None
        trainer.add_callback(self)

    @property
    def critic(self) -> Critic:
        """The network without the wrapper that several processes put around it."""
        return self.trainer.accelerator.unwrap_model(self.model)

    def groups(self) -> list[dict[str, Any]]:
        """Return the two groups of weights that learn: with weight decay, and without it."""
        decayed = set(self.trainer.get_decay_parameter_names(self.critic))
        weights: dict[bool, list[nn.Parameter]] = {True: [], False: []}
        for name, weight in self.critic.named_parameters():
            if weight.requires_grad:
                weights[name in decayed].append(weight)
        decay = {True: self.args.weight_decay, False: 0.0}
        return [
            {"params": parameters, "weight_decay": decay[decays]}
            for decays, parameters in weights.items()
            if parameters
        ]

    # -- values ------------------------------------------------------------------------------------------

    def values(self, batch: Minibatch) -> Tensor:
        """Return the critic's present values at the tokens of completions, (B, T).

        The critic reads at most a micro-batch of completions at a time.
        """
        rows = min(piece_rows(len(batch)), self.args.train_batch_size)
        with self.trainer.accelerator.autocast():
            return token_values(self.model, batch.ids, batch.mask, batch.time, rows)

    def loss(self, model: Any, minibatch: Minibatch, batch: Batch) -> Tensor:
        """Return what a micro-batch adds to the loss of an optimizer step, (): value loss times `vf_coef`."""
        assert minibatch.values is not None
        assert minibatch.returns is not None
        terms, cut = losses.value_terms(
            self.values(minibatch), minibatch.values, minibatch.returns, self.ppo.cliprange_value
        )
        # both are means over the tokens of an optimizer step, to which each micro-batch adds its part
        value, clipped = (
            (each * batch.mask).sum() / batch.step_tokens.clamp(min=1) for each in (terms, cut.float())
        )
        self.measures.add_mean("value_clip_fraction", clipped * batch.micro_batches)
        self.measures.add_mean("value_loss", value * batch.micro_batches)
        return self.ppo.vf_coef * value

    # -- steps -------------------------------------------------------------------------------------------

    def on_train_begin(self, args, state, control, **kwargs):
        self.scheduler = get_scheduler(
            args.lr_scheduler_type,
            optimizer=self.optimizer,
            num_warmup_steps=args.get_warmup_steps(state.max_steps),
            num_training_steps=state.max_steps,
            scheduler_specific_kwargs=args.lr_scheduler_kwargs,
        )

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        limit = args.max_grad_norm or float("inf")
        norm = whole(nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        stop_unless_finite("grad_norm/critic", norm, self.trainer)
        self.measures.add("grad_norm/critic", norm.item())
        self.step()

    def step(self) -> None:
        """Make an optimizer step and forget the gradients."""
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()

    # -- resume ------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return the state for a checkpoint; if the weights are sharded, the part of this process."""
        return {
            "weights": learnt(self.critic),
            "optimizer": own_state(self.optimizer),
            "scheduler": self.scheduler.state_dict(),
        }

    def restore(self, state: State) -> None:
        set_learnt(self.critic, state["weights"])
        load_own_state(self.optimizer, state["optimizer"])
        if self.scheduler:  # there is no scheduler if all steps were done before
            self.scheduler.load_state_dict(state["scheduler"])
