"""Stage `ppo`: reinforcement learning of a policy with a critic, from a reward model or a task's own rewards.

    python -m encore.stages ppo --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json --input reward_model=results/…/metrics.json …

`args` are those of PPOConfig: TRL's GRPOConfig, and kl_coef, gamma, lam and so on. The product is the policy
only; the critic is kept in the checkpoints during training. With `lora`, policy and critic have adapters of
their own, and the KL is measured to the policy without its adapters unless there is an input `reference`.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from encore import worlds
from encore.data import forms, prompts
from encore.learning import ptx
from encore.learning.fit import clean, fit
from encore.learning.ppo_config import PPOConfig
from encore.learning.rollout_trainer import Method, RolloutTrainer
from encore.learning.rollouts import Options
from encore.models import lora, reward_model
from encore.models.critic import from_nothing, from_policy, from_reward_model, with_adapters
from encore.models.experts import idle
from encore.models.quantized import loading
from encore.rewards import learned, rules
from encore.runtime import curves, gpus, health
from encore.runtime.progress import Progress
from encore.stages import colocated, rollouts, serving
from encore.stages.outcome import Outcome
from encore.stages.policy import load_policy, load_reference, take_model_options
from encore.stages.trainer_config import arguments

FORMULA = (
    "tokens of prompts and completions x (policy parameters x (2 generation + 2 old log-probabilities, or 4"
    " in bf16, + 6 an epoch) + 2 x reference parameters + critic parameters x (2 + 6 an epoch));"
    " reward model and pretraining documents not counted"
)
MEASURED = ("accuracy", "gold")  # at weight 0 where not rewarded, so that all curves can be compared
REWARD_MODEL = "reward_model"
# means of the first fifth of the steps say how fast the policy learns with a critic
AT_FIRST = ("reward", "rewards/gold/mean", "value_loss", "explained_variance")
# Below 0, the critic predicts the returns worse than their mean does.
EXPLAINED = 0.0


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> Outcome:
    """Train the policy and save it in `workdir`/final; times, ratios and completions beside `out`."""
    args = arguments(PPOConfig, config, rollouts.defaults(config["args"]), workdir, seed)
    rollouts.check_cache(args)
    with colocated.engine(args), serving.server(config, inputs, args, out, progress) as answering:
        return _train(config, inputs, args, answering, workdir, out, progress)


def _train(
    config: dict[str, Any],
    inputs: dict[str, Path],
    args: Any,  # a PPOConfig
    answering: Callable[[], None],
    workdir: Path,
    out: Path,
    progress: Progress,
) -> Outcome:
    """`run`, once `args` are known; `answering` waits for a vLLM server."""
    seed, options = args.seed, loading(config.get("lora"), args, take_model_options(args))
    policy = load_policy(config, inputs, **options)
    rollouts.end_with_turns(args, config, policy)
    own = "lora" in config and "reference" not in inputs  # the policy without adapters is its reference
    reference = None if own else load_reference(policy, inputs, **options)
    scorer = reward_model.load(inputs[REWARD_MODEL]) if REWARD_MODEL in inputs else None

    world = worlds.of_task(config["task"])
    weights = _weighted(config, world)
    names = [name for name in weights if name != REWARD_MODEL]
    cap, cache = args.max_completion_length, config.get("soft_overlong_cache")
    verifies = config["task"].get("verifier", "math")
    built = rules.build(names, world, seed, caps={0: cap}, cache=cache, verifies=verifies)
    functions = dict(zip(names, built, strict=True))
    if scorer:
        scored = learned.as_reward(scorer, policy.tokenizer, config.get("ensemble", "mean"))
        functions |= {REWARD_MODEL: scored} if REWARD_MODEL in weights else {}
    args.reward_weights = [weights[name] for name in functions]
    form = forms.of(config, policy.tokenizer)
    given = prompts.of_task(config["task"], form, config.get("problems"), seed)
    dataset, _ = prompts.fitting(given, policy.tokenizer, config.get("longest_prompt"))
    needed = args.generation_batch_size // args.num_generations
    checks = rollouts.checks(config, inputs, policy, dataset.to_list(), functions, needed, cap)

    documents = None
    if "ptx" in config:
        parts = args.world_size * args.gradient_accumulation_steps if "global_batch" in config else 1
        documents = ptx.read(config["ptx"], policy.tokenizer, seed, parts)
    answering()
    log = rollouts.opened(workdir)
    valued = critic(config.get("critic"), policy.model, scorer, seed)
    if "lora" in config:
        valued = with_adapters(valued, config["lora"], seed)
    trainer = RolloutTrainer(
        Method(
            Options(log=log),
            lean=config.get("sampler") == "lean",
            reference=reference,
            critic=valued,
            ptx=documents,
        ),
        args,
        model=policy.model,
        reward_funcs=list(functions.values()),
        train_dataset=dataset,
        processing_class=policy.tokenizer,
        peft_config=lora.adapters(config.get("lora"), policy.model, seed),
    )
    if scorer:  # no longer whole, once the critic has its copy
        scorer.spread() if gpus.sharded() else scorer.to(args.device)
    done = fit(trainer, progress, policy.keep(config))
    policy.model = lora.merged(trainer.model, config.get("saved_dtype"))
    policy.save(workdir)

    curve, scalars = rollouts.write(out, done.history, trainer.parts.measures.ratios, log)
    sizes = {
        "parameters": lora.parameters(policy.model),
        "critic_parameters": sum(weight.numel() for weight in valued.parameters()),
    }
    # 6: old log-probabilities are computed for the KL, and again for the loss
    sampled = 4 if trainer.parts.policy.fine else 6
    compared = reference or policy.model
    flops = (sizes["parameters"] - idle(policy.model)) * (sampled + 6 * args.num_iterations)
    flops += 2 * (lora.parameters(compared) - idle(compared))
    flops += sizes["critic_parameters"] * (2 + 6 * args.num_iterations)
    skipped = {"skipped/long": len(given) - len(dataset)}
    return Outcome(
        metrics={**scalars, **curves.first_fifths(curve, AT_FIRST), **sizes, **skipped},
        health=[*checks, *health.training(curve, scalars, done.precision), *_critic_explains(scalars)],
        fit=done,
        flops_a_token=flops,
        formula=FORMULA,
        curve=curve,
        clean=partial(clean, workdir),
    )


def _weighted(config: dict[str, Any], world: Any) -> dict[str, float]:
    """The weight of each reward: those of the recipe, after those that are always measured."""
    known = list(world.rewards) if world else []
    if world or "verifier" in config["task"]:
        known.append("accuracy")
    return {**{name: 0.0 for name in MEASURED if name in known}, **config["rewards"]}


def critic(start: str | None, policy: Any, scorer: Any, seed: int) -> Any:
    """The critic that a stage's key `critic` names; by default the reward model's, or without one the
    policy's."""
    start = start or (REWARD_MODEL if scorer else "policy")
    if start == REWARD_MODEL:
        return from_reward_model(scorer)
    return {"policy": from_policy, "random": from_nothing}[start](policy, seed)


def _critic_explains(scalars: dict[str, float]) -> list[health.Check]:
    """Warns if the critic predicts the returns no better than their mean does."""
    value = scalars.get("last_fifth/explained_variance")
    if value is None:
        return []
    message = f"the critic explains {value:.0%} of the variance of the returns in the last fifth of the steps"
    return [health.check("explained_variance", value > EXPLAINED, value, EXPLAINED, message)]
