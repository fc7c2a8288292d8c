"""Stage `grpo`: reinforcement learning of a policy with verifiable rewards, by TRL's GRPOTrainer.

    python -m recipes.stages grpo --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json …

Every field of `args` goes to TRL's GRPOConfig; the keys beside it are what TRL has no argument for.
"""

from functools import partial
from pathlib import Path
from typing import Any

from trl import GRPOConfig

from recipes import worlds
from recipes.data import prompts, replay
from recipes.rewards import rules, step_rewards
from recipes.runtime import health
from recipes.runtime.progress import Progress
from recipes.spec.checks.grpo import check
from recipes.stages import rollouts
from recipes.stages.outcome import Outcome
from recipes.stages.policy import load_policy, take_model_options
from recipes.stages.trainer_config import arguments
from recipes.trainers.dynamic_sampling import DynamicSampling
from recipes.trainers.fit import clean, fit
from recipes.trainers.grpo import GRPO
from recipes.trainers.grpo_objective import Extension

FORMULA = (
    "parameters x tokens of prompts and completions x (2 generation + 6 per iteration of forward and backward"
    " + 2 old log-probabilities, if computed + 2 reference, if beta is not 0);"
    " too many by the 6 for groups that dynamic sampling leaves out"
)


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> Outcome:
    """Train the policy and save it in `workdir`/final; times, ratios and completions beside `out`."""
    check(config)
    # accuracy is always measured, so that curves of arms with other rewards can be compared
    weights = {"accuracy": 0.0, **config["rewards"]}
    world = worlds.of_task(config["task"])
    defaults = rollouts.defaults()
    if "replay" in config:
        defaults["shuffle_dataset"] = False
    args = arguments(GRPOConfig, config["args"], defaults, workdir, seed)
    args.reward_weights = list(weights.values())
    overlong = {"cap": args.max_completion_length, "cache": config.get("soft_overlong_cache")}
    functions = dict(zip(weights, rules.build(weights, world, seed, **overlong), strict=True))
    policy = load_policy(config, inputs, **take_model_options(args))
    dataset = prompts.of_task(config["task"], config["template"], config.get("problems"), seed)
    if "replay" in config:
        dataset = dataset.select(replay.replay_order(len(dataset), args, **config["replay"], seed=seed))
    needed = args.generation_batch_size // args.num_generations
    cap = args.max_completion_length
    checks = rollouts.checks(config, inputs, policy, dataset.to_list(), functions, needed, cap)

    log = rollouts.opened(workdir)
    dynamic = config.get("dynamic_sampling")
    trainer = (DynamicSampling if dynamic else GRPO)(
        model=policy.model,
        args=args,
        reward_funcs=list(functions.values()),
        train_dataset=dataset,
        processing_class=policy.tokenizer,
    )
    trainer.rollouts = log
    trainer.lean = config.get("sampler") == "lean"
    trainer.extension = Extension(
        config.get("advantage"),
        config.get("importance_ratio"),
        config.get("old_logp_noise", 0.0),
        step_rewards.reader(world, policy.tokenizer) if world else None,
    )
    if isinstance(trainer, DynamicSampling) and dynamic:
        trainer.max_rounds = dynamic["max_rounds"]
    done = fit(trainer, progress)
    policy.save(workdir)

    curve, scalars = rollouts.write(out, done.history, trainer.ratios, log)
    parameters = policy.model.num_parameters()
    passes = 2 + 6 * args.num_iterations + 2 * (args.beta != 0)
    passes += 2 * (args.gradient_accumulation_steps % (args.steps_per_generation * args.num_iterations) != 0)
    return Outcome(
        metrics={**scalars, "parameters": parameters},
        health=checks + health.training(curve, scalars),
        fit=done,
        flops_a_token=passes * parameters,
        formula=FORMULA,
        curve=curve,
        clean=partial(clean, workdir),
    )
