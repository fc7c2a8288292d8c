"""Stage `ppo`: reinforcement learning of a policy with a critic, from a reward model or a task's own rewards.

    python -m recipes.stages.ppo --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json --input reward_model=results/…/metrics.json …

`args` are those of PPOConfig: TRL's GRPOConfig, and kl_coef, gamma, lam and so on. The product is the policy
alone; the critic lives in the checkpoints of the training.
"""

import copy
import sys
from functools import partial
from pathlib import Path
from typing import Any

from recipes.runtime import curves, health, provenance
from recipes.runtime.progress import Progress
from recipes.stages import cli

FORMULA = (
    "tokens of prompts and completions x (policy parameters x (2 generation + 2 old log-probabilities"
    " + 6 an epoch) + 2 x reference parameters + critic parameters x (2 + 6 an epoch));"
    " reward model and pretraining documents not counted"
)
MEASURED = ("accuracy", "gold")  # at weight 0 where not rewarded, so that all curves can be compared
REWARD_MODEL = "reward_model"
EARLY = ("reward", "rewards/gold/mean", "value_loss", "explained_variance")  # how fast a critic lets it learn
# Below 0 the critic is worse than a constant.
EXPLAINED = 0.0


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Train and save the policy under `workdir`/final; its curves, ratios and completions beside `out`."""
    import torch

    from recipes import worlds
    from recipes.data import prompts
    from recipes.models import language_model, reward_model
    from recipes.rewards import learned, rules
    from recipes.spec.checks.ppo import check
    from recipes.stages import rollouts
    from recipes.stages.arguments import arguments
    from recipes.trainers import ptx
    from recipes.trainers.fit import clean, fit
    from recipes.trainers.ppo import PPO
    from recipes.trainers.ppo_config import PPOConfig

    started = provenance.now()
    check({**config, "needs": dict.fromkeys(inputs)})
    defaults: dict[str, Any] = {"save_steps": 20}
    if not torch.cuda.is_available():
        defaults["cache_implementation"] = "static"  # a tenth faster than a cache that grows by copying
    args = arguments(PPOConfig, config["args"], defaults, workdir, seed)
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    tokenizer = language_model.load_tokenizer(source)
    options = args.model_init_kwargs or {}
    model = language_model.load(source, **options)
    generation = copy.deepcopy(model.generation_config)
    args.model_init_kwargs = None  # TRL refuses them with a loaded model
    anchor = language_model.locate(None, inputs["reference"]) if "reference" in inputs else source
    places = (f"the reference {anchor.place}", f"the policy {source.place}")
    language_model.same_tokenizer(language_model.load_tokenizer(anchor), tokenizer, places)
    reference = language_model.load(anchor, **options)
    scorer = reward_model.load(inputs[REWARD_MODEL]) if REWARD_MODEL in inputs else None

    world = worlds.of_task(config["task"])
    weights = weighted(config, world)
    names = [name for name in weights if name != REWARD_MODEL]
    overlong = {"cap": args.max_completion_length, "cache": config.get("soft_overlong_cache")}
    functions = dict(zip(names, rules.build(names, world, seed, **overlong), strict=True))
    if scorer:
        scorer.to(args.device)
        scored = learned.as_reward(scorer, tokenizer, config.get("ensemble", "mean"))
        functions |= {REWARD_MODEL: scored} if REWARD_MODEL in weights else {}
    args.reward_weights = [weights[name] for name in functions]
    given = prompts.load(config["task"], config["template"], config.get("problems"), seed)
    dataset, longest = prompts.fitting(given, tokenizer, config.get("longest_prompt"))
    positions = getattr(model.config, "max_position_embeddings", None)
    checks = health.stop_at_errors(
        [
            health.enough_prompts(len(dataset), args.generation_batch_size // args.num_generations),
            health.context(longest, args.max_completion_length, positions),
            *health.before_sampling(config, inputs.get("policy"), tokenizer, dataset.to_list(), functions),
        ]
    )

    log = rollouts.opened(workdir)
    trainer = PPO(
        model=model,
        args=args,
        reward_funcs=list(functions.values()),
        train_dataset=dataset,
        processing_class=tokenizer,
        critic=critic(config.get("critic"), model, scorer, seed),
        reference=reference,
        ptx=ptx.read(config["ptx"], tokenizer, seed) if "ptx" in config else None,
    )
    trainer.rollouts = log
    trainer.lean = config.get("sampler") == "lean"
    done = fit(trainer, progress)
    language_model.save(model, tokenizer, workdir / "final", generation)

    measured, scalars = rollouts.write(out, done.history, trainer.ratios, log)
    sizes = {
        "parameters": model.num_parameters(),
        "critic_parameters": sum(weight.numel() for weight in trainer.critic.parameters()),
    }
    passes = sizes["parameters"] * (4 + 6 * args.num_iterations) + 2 * reference.num_parameters()
    passes += sizes["critic_parameters"] * (2 + 6 * args.num_iterations)
    return {
        "metrics": {**scalars, **early(measured), **sizes, "skipped/long": len(given) - len(dataset)},
        "health": [*checks, *health.training(measured, scalars), *critic_explains(scalars)],
        "provenance": provenance.record(started, done, passes, FORMULA),
        "clean": partial(clean, workdir),
    }


def weighted(config: dict[str, Any], world: Any) -> dict[str, float]:
    """The rewards of a recipe with their weights, after those that are measured in any case."""
    known = list(world.rewards) if world else []
    if world or "verifier" in config["task"]:
        known.append("accuracy")
    return {**{name: 0.0 for name in MEASURED if name in known}, **config["rewards"]}


def critic(start: str | None, policy: Any, scorer: Any, seed: int) -> Any:
    """The critic that a stage's key `critic` names; without it from the reward model, if there is one."""
    from recipes.models.critic import from_nothing, from_policy, from_reward_model

    start = start or (REWARD_MODEL if scorer else "policy")
    if start == REWARD_MODEL:
        return from_reward_model(scorer)
    return {"policy": from_policy, "random": from_nothing}[start](policy, seed)


def early(curve: list[curves.Row]) -> dict[str, float]:
    """`first_fifth/<metric>`: means over the first fifth of the steps."""
    found = {f"first_fifth/{name}": curves.first_fifth(curve, name) for name in EARLY}
    return {name: value for name, value in found.items() if value is not None}


def critic_explains(scalars: dict[str, float]) -> list[health.Check]:
    """Warns of a critic that says less of the returns than their mean does."""
    value = scalars.get("last_fifth/explained_variance")
    if value is None:
        return []
    message = f"the critic explains {value:.0%} of the variance of the returns in the last fifth of the steps"
    return [
        health.check("explained_variance", value > EXPLAINED, value, EXPLAINED, message, "warning"),
    ]


if __name__ == "__main__":
    sys.exit(cli.main("ppo", run))
