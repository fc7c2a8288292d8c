"""GRPO, PPO and distillation: TRL's GRPOTrainer, whose rollouts and loss come from Encore's own parts.

| part         | what it does                                                                               |
|--------------|--------------------------------------------------------------------------------------------|
| rollouts     | draws completions, has them scored, cuts them into minibatches: `rollouts`, `mixed_groups` |
| sampler      | `samplers`: transformers or vLLM by TRL, our decoder, a policy that calls a tool; `ahead`  |
| scorer       | `scoring`: the rewards of completions                                                      |
| estimator    | `estimators`: advantages of groups, of a moving average, of steps, of a critic             |
| policy       | `policy`: log-probabilities of policy, old policy and reference                            |
| objective    | `objectives.grpo.loss`, or a user's objective                                              |
| distillation | `distillation`: the loss in place of policy and objective, if there is a teacher;          |
|              | `hindsight`: what the policy is shown if it is its own teacher                             |
| extra losses | `critic` and `ptx`                                                                         |
| measures     | `measures`: the metrics of the log lines                                                   |

TRL keeps the loop, the optimizer, `generate`, vLLM and its weights.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from trl import GRPOTrainer

from encore.learning import estimators
from encore.learning.ahead import AheadSampler
from encore.learning.critic import LearningCritic
from encore.learning.distillation import Distillation, EitherSampler, Teacher
from encore.learning.entropy import EntropyBonus
from encore.learning.hindsight import OfHindsight
from encore.learning.measures import Measures
from encore.learning.minibatch import Minibatch
from encore.learning.mixed_groups import MixedGroups
from encore.learning.policy import Policy
from encore.learning.positions import positions_run
from encore.learning.prompt_order import EpochOrder
from encore.learning.ptx import Ptx, PtxLoss
from encore.learning.reference import beside
from encore.learning.resumable import Part, Resumable
from encore.learning.rollouts import Options, Rollouts
from encore.learning.samplers import Draw, LeanSampler, Sampler, ServerSampler, ToolSampler, TrlSampler
from encore.learning.scoring import Scorer, every_completion, every_weighted_reward
from encore.models import lora
from encore.models.critic import Critic
from encore.models.language_model import disable_dropout
from encore.objectives import grpo
from encore.objectives.grpo import Batch, Terms
from encore.recipe.covariance import ClipCov, KlCov
from encore.recipe.grpo_args import PpoArgs
from encore.recipe.loss_types import check_window
from encore.rewards.step_rewards import Reader
from encore.runtime import gpus
from encore.sampling.tools import ToolInWorld

# takes a model, a minibatch, and the tensors of its loss; returns what the micro-batch adds to the loss, ()
ExtraLoss = Callable[[Any, Minibatch, Batch], Tensor]


# takes the tensors of a loss, and TRL's arguments
Objective = Callable[[Batch, Any], Terms]


@dataclass(frozen=True)
class Method:
    """The options of a stage's learning method for which TRL has no argument."""

    rollouts: Options = field(default_factory=Options)
    lean: bool = False  # whether our decoder samples
    sampler_precision: str | None = None  # the precision in which it samples; None for the policy's own
    share_prompts: bool = False  # whether a prompt is read once for all its completions
    tool: ToolInWorld | None = None
    max_rounds: int | None = None  # most rounds of dynamic sampling; None without dynamic sampling
    max_staleness: int | None = None  # rollouts that are sampled ahead; None to sample without a queue
    advantage: str | None = None  # a name of `estimators.of_stage`; None means TRL's estimator
    pass_k: int | None = None  # the k of the advantage `pass_at_k`
    read_steps: Reader | None = None  # the reader of steps for the advantage `process`
    importance_ratio: str | None = None  # a level of `grpo.importance_ratio` that TRL lacks
    limit: ClipCov | KlCov | None = None  # what holds back tokens of high covariance
    bottom_entropy_quantile: float | None = None  # share of the tokens of lowest entropy, which alone learn
    objective: Objective | None = None  # a user's objective; if None, loss_type and ratio decide
    # the reference model; None if it is the policy without its adapters, or if there is no KL
    reference: Any = None
    critic: Critic | None = None  # the critic of PPO
    ppo: PpoArgs = field(default_factory=PpoArgs)  # arguments that are read only if there is a critic
    ptx: Ptx | None = None
    teacher: Teacher | None = None  # what the policy learns from in distillation, instead of rewards


@dataclass(frozen=True)
class Parts:
    """The parts of a `RolloutTrainer`."""

    policy: Policy
    rollouts: Rollouts
    measures: Measures
    objective: Objective
    extra_losses: list[ExtraLoss]
    kept: dict[str, Part]  # parts with a state in each checkpoint, in the order in which they are restored
    distillation: Distillation | None = None


class RolloutTrainer(Resumable, GRPOTrainer):
    """A GRPOTrainer that learns by a `Method` and can resume at any step of a rollout."""

    def __init__(self, method: Method, args: Any, **trl: Any):
        beta, synced = args.beta, args.sync_ref_model
        # with other values TRL would load its own copy of the reference
        args.beta, args.sync_ref_model = 0.0, False
        super().__init__(args=args, **trl)
        args.beta, args.sync_ref_model = beta, synced
        check_window(args.loss_type, args.gradient_accumulation_steps, args.steps_per_generation)
        if args.disable_dropout:  # TRL leaves dropout on in attention, and ratios would not start at 1
            disable_dropout(self.model)
        if gpus.sharded():
            # makes `generate` of transformers go on until all processes have ended, because they share each
            # layer
            lora.below(self.model)._is_fsdp_managed_module = True
        self.parts = _assembled(self, method)
        self.bottom_entropy_quantile = method.bottom_entropy_quantile
        self.rounded_sampler = method.sampler_precision is not None

    def held(self) -> dict[str, Part]:
        return {**super().held(), **self.parts.kept}

    def begin_anew(self) -> None:
        self.parts.rollouts.begin_anew()

    def _get_train_sampler(self, dataset=None):
        trl: Any = super()._get_train_sampler(dataset)
        return EpochOrder(
            data_source=trl.data_source,
            mini_repeat_count=trl.mini_repeat_count,
            batch_size=trl.batch_size,
            repeat_count=trl.repeat_count,
            shuffle=trl.shuffle,
            seed=trl.seed,
        )

    def _prepare_inputs(self, generation_batch):
        return self.parts.rollouts.minibatch(generation_batch)

    def _compute_loss(self, model, inputs):
        parts = self.parts
        if parts.distillation:
            return parts.distillation.loss(model, inputs)
        with positions_run(self.model) as positions:
            logp, entropy, balance = parts.policy.logps(
                model, inputs, with_entropy=True, with_balance=self.aux_loss_enabled
            )
        parts.measures.positions(sum(positions), inputs)
        assert entropy is not None
        batch = self.loss_batch(inputs, logp, entropy)
        terms = parts.objective(batch, self.args)
        parts.measures.loss(inputs, batch, entropy, terms, parts.rollouts.used, parts.policy)
        loss = terms.loss
        if balance is not None:
            parts.measures.add_mean("aux_loss", balance)
            loss = loss + self.router_aux_loss_coef * balance / batch.micro_batches
        for extra in parts.extra_losses:
            loss = loss + extra(model, inputs, batch)
        return loss

    def loss_batch(self, minibatch: Minibatch, logp: Tensor, entropy: Tensor) -> Batch:
        """Return the tensors of the loss; `logp` and `entropy`, (B, T), belong to the present policy."""
        mask, advantages, bonus = minibatch.loss_mask, minibatch.advantages, self.parts.measures.entropy_bonus
        old = logp.detach()
        if minibatch.old is not None:  # NaN where a sampler with older weights reports nothing
            old = torch.where(minibatch.old.isnan(), old, minibatch.old)
        step_tokens = self.parts.rollouts.step_tokens()
        return Batch(
            logp=logp,
            old=old if minibatch.noise is None else old + minibatch.noise,
            advantage=advantages if advantages.dim() > 1 else advantages[:, None],
            mask=mask,
            cap=self.parts.rollouts.cap,
            step_tokens=mask.sum() if step_tokens is None else step_tokens,
            micro_batches=self.current_gradient_accumulation_steps,
            ref=minibatch.ref,
            sampled=minibatch.sampled,
            correction=minibatch.correction,
            learning=self._learning(entropy, mask),
            entropy=entropy if bonus else None,
            entropy_coef=bonus.weight,
            by_length=self.parts.rollouts.by_length,
        )

    def _learning(self, entropy: Tensor, mask: Tensor) -> Tensor | None:
        """Return the tokens that learn because of their `entropy`, (B, T) of bool; None if all learn."""
        top, bottom = self.args.top_entropy_quantile, self.bottom_entropy_quantile
        if bottom is not None:
            return ~self.get_high_entropy_mask(entropy, mask, bottom)
        return self.get_high_entropy_mask(entropy, mask, 1 - top) if top < 1 else None

    def log(self, logs, start_time=None):
        self.parts.measures.flush()
        super().log(logs, start_time)


def _assembled(trainer: Any, method: Method) -> Parts:
    """Return the parts of a new trainer."""
    args, of_critic = trainer.args, method.critic is not None
    grouped = not of_critic and method.teacher is None
    measures = Measures(trainer, EntropyBonus(args), grouped, clips=method.objective is None)
    reference = None
    if of_critic or args.beta:
        reference = beside(method.reference, trainer)
    extra_losses: list[ExtraLoss] = []
    kept: dict[str, Part] = {"measures": measures}
    sampler = _sampler(trainer, method)
    if method.max_staleness is not None:
        sampler = kept["ahead"] = AheadSampler(sampler, method.max_staleness, measures)
    policy = Policy(
        trainer, sampler, reference, of_critic, method.share_prompts, in_ratios=method.teacher is None
    )
    estimator: estimators.Estimator
    if method.critic is not None:
        critic = LearningCritic(method.critic, method.ppo, trainer, measures)
        estimator = estimators.Gae(method.ppo, policy, critic, measures)
        extra_losses.append(critic.loss)
        kept["critic"] = critic
    elif method.teacher:
        estimator = _of_teacher(method.teacher, trainer, measures)
    else:
        estimator = estimators.of_stage(method.advantage, args, method.read_steps, method.pass_k)
    if method.ptx:
        extra_losses.append(PtxLoss(method.ptx, trainer, measures).loss)
    scorer = Scorer(trainer, every_completion if grouped else every_weighted_reward)
    ingredients = (trainer, sampler, scorer, policy, estimator, measures, method.rollouts)
    rounds = method.max_rounds
    rollouts = MixedGroups(*ingredients, max_rounds=rounds) if rounds else Rollouts(*ingredients)
    kept |= {"estimator": estimator, "rollouts": rollouts}
    if reference:
        kept["reference"] = reference
    level = method.importance_ratio or args.importance_sampling_level
    objective = method.objective or partial(grpo.loss, level=level, limit=method.limit)
    distillation = Distillation(method.teacher, trainer, rollouts, measures) if method.teacher else None
    if distillation:
        kept["teacher"] = distillation.reference
    return Parts(policy, rollouts, measures, objective, extra_losses, kept, distillation)


def _of_teacher(teacher: Teacher, trainer: Any, measures: Measures) -> estimators.Estimator:
    """Return the estimator of distillation, where a teacher stands for advantages."""
    if teacher.hindsight is None:
        return estimators.Unrewarded()
    return OfHindsight(teacher.hindsight, trainer, measures)


def _sampler(trainer: Any, method: Method) -> Sampler:
    """Return the sampler of a new trainer's rollouts, which samples them when they are learned from."""
    drawing: Draw = TrlSampler(trainer)
    if method.teacher and method.teacher.on_policy < 1:
        drawing = EitherSampler(trainer, method.teacher)
    elif method.lean:
        drawing = LeanSampler(trainer, precision=method.sampler_precision)
    elif method.max_staleness and trainer.args.use_vllm and trainer.args.vllm_mode == "server":
        drawing = ServerSampler(trainer)
    if method.tool:
        return ToolSampler(trainer, drawing, method.tool, method.rollouts.learn_results)
    return Sampler(trainer, drawing)
