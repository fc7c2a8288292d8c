"""Stage `grpo`: reinforcement learning of a policy with verifiable rewards, by TRL's GRPOTrainer.

    python -m recipes.stages.grpo --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json …

Every field of `args` goes to TRL's GRPOConfig as it is; the keys beside it are what TRL cannot be told.
"""

import copy
import sys
from functools import partial
from pathlib import Path
from typing import Any

from recipes.runtime import health, provenance
from recipes.runtime.progress import Progress
from recipes.stages import cli

FORMULA = (
    "parameters x tokens of prompts and completions x (2 generation + 6 per iteration of forward and backward"
    " + 2 old log-probabilities, if computed + 2 reference, if beta is not 0);"
    " too many by the 6 for groups that dynamic sampling leaves out"
)


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Train and save the policy under `workdir`/final; its curves, ratios and completions beside `out`."""
    import torch
    from trl import GRPOConfig

    from recipes import worlds
    from recipes.data import prompts, replay
    from recipes.models import language_model
    from recipes.objectives import process_supervision
    from recipes.rewards import rules
    from recipes.spec.checks.grpo import check
    from recipes.stages import rollouts
    from recipes.stages.arguments import arguments
    from recipes.trainers.dynamic_sampling import DynamicSampling
    from recipes.trainers.fit import clean, fit
    from recipes.trainers.grpo import GRPO
    from recipes.trainers.grpo_objective import Extension

    started = provenance.now()
    check(config)
    # accuracy is always measured, so that curves of arms with other rewards can be compared
    weights = {"accuracy": 0.0, **config["rewards"]}
    world = worlds.of_task(config["task"])
    defaults: dict[str, Any] = {"save_steps": 20}
    if "replay" in config:
        defaults["shuffle_dataset"] = False
    if not torch.cuda.is_available():
        defaults["cache_implementation"] = "static"  # a tenth faster than a cache that grows by copying
    args = arguments(GRPOConfig, config["args"], defaults, workdir, seed)
    args.reward_weights = list(weights.values())
    overlong = {"cap": args.max_completion_length, "cache": config.get("soft_overlong_cache")}
    functions = dict(zip(weights, rules.build(weights, world, seed, **overlong), strict=True))
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    tokenizer = language_model.load_tokenizer(source)
    model = language_model.load(source, **(args.model_init_kwargs or {}))
    generation = copy.deepcopy(model.generation_config)
    args.model_init_kwargs = None  # TRL refuses them with a loaded model
    dataset = prompts.load(config["task"], config["template"], config.get("problems"), seed)
    if "replay" in config:
        dataset = dataset.select(replay.replay_order(len(dataset), args, **config["replay"], seed=seed))
    longest = max(len(ids) for ids in tokenizer(dataset["prompt"][:])["input_ids"])
    positions = getattr(model.config, "max_position_embeddings", None)
    checks = health.stop_at_errors(
        [
            health.enough_prompts(len(dataset), args.generation_batch_size // args.num_generations),
            health.context(longest, args.max_completion_length, positions),
            *health.before_sampling(config, inputs.get("policy"), tokenizer, dataset.to_list(), functions),
        ]
    )

    log = rollouts.opened(workdir)
    dynamic = config.get("dynamic_sampling")
    trainer = (DynamicSampling if dynamic else GRPO)(
        model=model,
        args=args,
        reward_funcs=list(functions.values()),
        train_dataset=dataset,
        processing_class=tokenizer,
    )
    trainer.rollouts = log
    trainer.lean = config.get("sampler") == "lean"
    trainer.extension = Extension(
        config.get("advantage"),
        config.get("importance_ratio"),
        config.get("old_logp_noise", 0.0),
        process_supervision.reader(world, tokenizer) if world else None,
    )
    if isinstance(trainer, DynamicSampling) and dynamic:
        trainer.max_rounds = dynamic["max_rounds"]
    done = fit(trainer, progress)
    language_model.save(model, tokenizer, workdir / "final", generation)

    measured, scalars = rollouts.write(out, done.history, trainer.ratios, log)
    parameters = model.num_parameters()
    passes = 2 + 6 * args.num_iterations + 2 * (args.beta != 0)
    passes += 2 * (args.gradient_accumulation_steps % (args.steps_per_generation * args.num_iterations) != 0)
    return {
        "metrics": {**scalars, "parameters": parameters},
        "health": checks + health.training(measured, scalars),
        "provenance": provenance.record(started, done, passes * parameters, FORMULA),
        "clean": partial(clean, workdir),
    }


if __name__ == "__main__":
    sys.exit(cli.main("grpo", run))
