"""Stage `grpo`: reinforcement learning of a policy with verifiable rewards, by TRL's GRPOTrainer.

    python -m encore.stages grpo --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json …

With `domains` instead of task, template and rewards, each prompt has the rewards of its own domain. Every
field of `args` goes to TRL's GRPOConfig; the keys beside it are options that TRL lacks.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from encore.learning.completions import CompletionsLog
from encore.learning.fit import clean
from encore.learning.mixed_groups import MixedGroups
from encore.learning.rollouts import Options
from encore.learning.trainer import Method
from encore.models import lora, reward_model
from encore.models.experts import idle
from encore.objectives import own
from encore.recipe.caps import Caps
from encore.recipe.kinds import GrpoStage
from encore.recipe.kinds.rollout import REWARD_MODEL
from encore.rewards import step_rewards
from encore.runtime import curves, health
from encore.sampling.tools import ToolInWorld
from encore.sampling.turns import room
from encore.stages import rollout_args, setup
from encore.stages.job import Job
from encore.stages.outcome import Outcome

# metrics whose mean over the first fifth of the steps is reported too
AT_FIRST = ("groups/wrong_in_mixed",)
FORMULA = (
    "parameters x tokens of prompts and completions x (2 generation + 6 per iteration of forward and backward"
    " + 2 old log-probabilities, if computed + 2 reference, if beta is not 0);"
    " without the 6 for groups that dynamic sampling leaves out; reward model not counted"
)


def run(stage: GrpoStage, job: Job) -> Outcome:
    """Train the policy and save it; times, ratios and completions go beside metrics.json."""
    caps, defaults = stage.caps_by_step, {}
    if stage.caps:
        defaults["max_completion_length"] = caps[0]
    if stage.replay or stage.domains:
        defaults["shuffle_dataset"] = False
    with rollout_args.started(stage, job, **defaults) as (args, answering):
        return _train(stage, job, args, caps, answering)


def _train(stage: GrpoStage, job: Job, args: Any, caps: Caps, answering: Callable[[], None]) -> Outcome:
    """Do the work of `run` once `args`, a GRPOConfig, exists; `answering` waits for a vLLM server."""
    scorers = {}
    if REWARD_MODEL in job.inputs:
        scorers[REWARD_MODEL] = reward_model.load(job.inputs[REWARD_MODEL]).to(args.device)
    ready = setup.prepared(stage, job, args, caps, scorers, measured=("accuracy",))
    log = setup.opened(job)
    method = _method(stage, ready, log)
    checks = setup.checks(ready, job, max(caps.values()) + room(stage.tool, ready.policy.tokenizer))
    answering()
    trainer = ready.trainer(method)
    done = ready.policy.train(trainer, stage, job)
    ready.policy.save(job.workdir)

    curve, scalars = setup.record(job, done.history, trainer.parts.measures.ratios, log)
    parameters = lora.parameters(ready.policy.model)
    active = parameters - idle(ready.policy.model)
    passes = 2 + 2 * (args.beta != 0) + 2 * trainer.parts.policy.needs_old
    training_passes, training_flops = 6 * args.num_iterations, 0.0
    rollouts = trainer.parts.rollouts
    if isinstance(rollouts, MixedGroups):
        training_flops = training_passes * active * rollouts.trained_tokens
        training_passes = 0
    return Outcome(
        metrics={
            **scalars,
            **curves.first_fifths(curve, AT_FIRST),
            "parameters": parameters,
            **setup.skipped(ready.tasks),
        },
        health=checks + health.training(curve, scalars, done.precision),
        fit=done,
        flops_a_token=(passes + training_passes) * active,
        formula=FORMULA,
        training_flops=training_flops,
        curve=curve,
        clean=partial(clean, job.workdir),
    )


def _method(stage: GrpoStage, ready: setup.Setup, log: CompletionsLog | None) -> Method:
    """Return the stage's learning method. Raises UserError if the user's objective breaks the contract."""
    objective = own.objective(stage.objective) if stage.objective else None
    if objective:
        own.try_out(objective, ready.args)
    world = None if stage.domains else ready.tasks[0].world
    return Method(
        Options(
            caps=stage.caps_by_step if stage.caps else None,
            log=log,
            old_logp_noise=stage.old_logp_noise,
            by_length=stage.by_length,
            learn_results=stage.learn_results,
        ),
        lean=stage.sampler == "lean",
        sampler_precision=stage.sampler_precision,
        share_prompts=stage.share_prompts,
        tool=ToolInWorld(stage.tool, world) if stage.tool else None,
        max_rounds=stage.dynamic_sampling.max_rounds if stage.dynamic_sampling else None,
        max_staleness=stage.max_staleness,
        advantage=stage.advantage,
        pass_k=stage.pass_k,
        read_steps=step_rewards.reader(world, ready.policy.tokenizer) if world else None,
        importance_ratio=stage.importance_ratio,
        limit=stage.clip_cov or stage.kl_cov,
        bottom_entropy_quantile=stage.bottom_entropy_quantile,
        objective=objective,
        reference=ready.reference,
    )
