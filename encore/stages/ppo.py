"""Stage `ppo`: reinforcement learning of a policy with a critic, from a reward model or a task's own rewards.

    python -m encore.stages ppo --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json --input reward_model=results/…/metrics.json …

`args` has the fields of TRL's GRPOConfig, and fields of PPO such as kl_coef, gamma and lam. The product is
the policy only; the critic is kept in the checkpoints during training. With `lora`, policy and critic have
adapters of their own, and the KL is measured to the policy without its adapters unless there is an input
`reference`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from encore.learning import ptx
from encore.learning.fit import clean
from encore.learning.rollouts import Options
from encore.learning.trainer import Method
from encore.models import lora, reward_model
from encore.models.critic import Critic, from_nothing, from_policy, from_reward_model, with_adapters
from encore.models.experts import idle
from encore.models.reward_model import RewardModel
from encore.recipe.kinds import PpoStage
from encore.recipe.kinds.rollout import REWARD_MODEL
from encore.runtime import curves, gpus, health
from encore.stages import rollout_args, setup
from encore.stages.job import Job
from encore.stages.outcome import Outcome

FORMULA = (
    "tokens of prompts and completions x (policy parameters x (2 generation + 2 old log-probabilities, or 4"
    " in bf16, + 6 an epoch) + 2 x reference parameters + critic parameters x (2 + 6 an epoch));"
    " reward model and pretraining documents not counted"
)
# rewards that are always logged, with weight 0 if the recipe does not set one, so that arms can be compared
MEASURED = ("accuracy", "gold")
# metrics whose mean over the first fifth of the steps says how fast the policy learns with a critic
AT_FIRST = ("reward", "rewards/gold/mean", "value_loss", "explained_variance")
# below 0, the critic predicts the returns worse than their mean does
EXPLAINED = 0.0


def run(stage: PpoStage, job: Job) -> Outcome:
    """Train the policy and save it; times, ratios and completions go beside metrics.json."""
    with rollout_args.started(stage, job, disable_dropout=stage.args.disable_dropout) as (args, answering):
        return _train(stage, job, args, answering)


def _train(stage: PpoStage, job: Job, args: Any, answering: Callable[[], None]) -> Outcome:
    """Do the work of `run` once `args`, a GRPOConfig, exists; `answering` waits for a vLLM server."""
    scorers = {role: reward_model.load(job.inputs[role]) for role in stage.learned if role in job.inputs}
    ready = setup.prepared(stage, job, args, {0: args.max_completion_length}, scorers, MEASURED)
    policy, log = ready.policy, setup.opened(job)
    checks = setup.checks(ready, job, args.max_completion_length)
    documents = None
    if stage.ptx:
        parts = args.world_size * args.gradient_accumulation_steps if stage.global_batch else 1
        documents = ptx.read_documents(stage.ptx, policy.tokenizer, args.seed, parts)
    answering()
    valued = critic(stage.critic, policy.model, scorers.get(REWARD_MODEL), args.seed)
    if stage.lora:
        valued = with_adapters(valued, stage.lora, args.seed)
    method = Method(
        Options(log=log, reshuffle=stage.args.reshuffle, by_length=stage.by_length),
        lean=stage.sampler == "lean",
        reference=ready.reference,
        critic=valued,
        ppo=stage.args,
        ptx=documents,
    )
    trainer = ready.trainer(method)
    for scorer in scorers.values():  # a reward model is incomplete once the critic has taken its copy
        scorer.spread() if gpus.sharded() else scorer.to(args.device)
    done = policy.train(trainer, stage, job)
    policy.save(job.workdir)

    curve, scalars = setup.record(job, done.history, trainer.parts.measures.ratios, log)
    sizes = {
        "parameters": lora.parameters(policy.model),
        "critic_parameters": sum(weight.numel() for weight in valued.parameters()),
    }
    skipped = {"skipped/long": 0} | setup.skipped(ready.tasks)
    return Outcome(
        metrics={**scalars, **curves.first_fifths(curve, AT_FIRST), **sizes, **skipped},
        health=[*checks, *health.training(curve, scalars, done.precision), *_critic_explains(scalars)],
        fit=done,
        flops_a_token=_flops_a_token(ready, sizes, fine=trainer.parts.policy.fine),
        formula=FORMULA,
        curve=curve,
        clean=partial(clean, job.workdir),
    )


def _flops_a_token(ready: setup.Setup, sizes: dict[str, int], fine: bool) -> float:
    """Return the FLOPs for each token; `fine`: whether the sampler's log-probabilities serve as old ones.

    `sizes`: numbers of parameters of the policy and of the critic.
    """
    policy, epochs = ready.policy.model, ready.args.num_iterations
    # 6, because old log-probabilities are computed for the KL, and again for the loss
    flops = (sizes["parameters"] - idle(policy)) * ((4 if fine else 6) + 6 * epochs)
    compared = ready.reference or policy
    flops += 2 * (lora.parameters(compared) - idle(compared))
    return flops + sizes["critic_parameters"] * (2 + 6 * epochs)


def critic(start: str | None, policy: Any, scorer: RewardModel | None, seed: int) -> Critic:
    """Return the critic that a stage's key `critic` names.

    By default it starts from the reward model, or without a reward model from the policy.
    """
    if scorer and start in (None, REWARD_MODEL):
        return from_reward_model(scorer)
    return from_nothing(policy, seed) if start == "random" else from_policy(policy, seed)


def _critic_explains(scalars: dict[str, float]) -> list[health.Check]:
    """Return a check that warns if the critic predicts the returns no better than their mean would."""
    value = scalars.get("last_fifth/explained_variance")
    if value is None:
        return []
    message = f"the critic explains {value:.0%} of the variance of the returns in the last fifth of the steps"
    return [health.make_check("explained_variance", value > EXPLAINED, value, EXPLAINED, message)]
