"""Stage `grpo`: reinforcement learning of a policy with verifiable rewards, by TRL's GRPOTrainer.

    python -m encore.stages grpo --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json …

With `domains` in place of task, template and rewards, each prompt has the rewards of its own domain.

Every field of `args` goes to TRL's GRPOConfig; the keys beside it are what TRL has no argument for.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from trl import GRPOConfig

from encore.learning.fit import clean, fit
from encore.learning.rollout_trainer import Method, RolloutTrainer
from encore.learning.rollouts import Options
from encore.models import lora
from encore.models.experts import idle
from encore.models.quantized import loading
from encore.objectives import own
from encore.objectives.caps import Caps, of_stage
from encore.recipe.kinds.grpo import check_boundaries
from encore.rewards import step_rewards
from encore.runtime import curves, health
from encore.runtime.progress import Progress
from encore.sampling import tools
from encore.sampling.turns import room
from encore.stages import colocated, grpo_tasks, rollouts, serving
from encore.stages.outcome import Outcome
from encore.stages.policy import load_policy, load_reference, take_model_options
from encore.stages.trainer_config import arguments

AT_FIRST = ("groups/wrong_in_mixed",)  # later the policy has learned from them
FORMULA = (
    "parameters x tokens of prompts and completions x (2 generation + 6 per iteration of forward and backward"
    " + 2 old log-probabilities, if computed + 2 reference, if beta is not 0);"
    " too many by the 6 for groups that dynamic sampling leaves out; reward model not counted"
)


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> Outcome:
    """Train the policy and save it in `workdir`/final; times, ratios and completions beside `out`."""
    caps = of_stage(config)
    first = {"max_completion_length": caps[0]} if "caps" in config else {}
    defaults = rollouts.defaults(config["args"])
    if "replay" in config or "domains" in config:
        defaults["shuffle_dataset"] = False
    args = arguments(GRPOConfig, {**config, "args": config["args"] | first}, defaults, workdir, seed)
    rollouts.check_cache(args)
    caps = caps or {0: args.max_completion_length}
    check_boundaries(caps, args.steps_per_generation * args.num_iterations, args.gradient_accumulation_steps)
    with colocated.engine(args), serving.server(config, inputs, args, out, progress) as answering:
        return _train(config, inputs, args, caps, answering, workdir, out, progress)


def _train(
    config: dict[str, Any],
    inputs: dict[str, Path],
    args: Any,  # a GRPOConfig
    caps: Caps,
    answering: Callable[[], None],
    workdir: Path,
    out: Path,
    progress: Progress,
) -> Outcome:
    """`run`, once `args` and the `caps` of its rollouts are known; `answering` waits for a vLLM server."""
    options = loading(config.get("lora"), args, take_model_options(args))
    policy = load_policy(config, inputs, **options)
    # with adapters, the reference is the policy without them
    reference = load_reference(policy, inputs, **options) if args.beta and "lora" not in config else None
    rollouts.end_with_turns(args, config, policy)
    tasks = grpo_tasks.of_stage(config, inputs, policy, args, caps)
    functions, args.reward_weights = grpo_tasks.rewarded(tasks)
    dataset = grpo_tasks.dataset(tasks, config, args)
    objective = own.objective(config["objective"]) if "objective" in config else None
    if objective:
        own.try_out(objective, args)
    tool = tools.of_config(config.get("tool"))
    longest = max(caps.values()) + room(tool, policy.tokenizer)
    checks = grpo_tasks.checks(tasks, dataset, inputs, policy, args, longest)

    answering()
    log = rollouts.opened(workdir)
    world = None if "domains" in config else tasks[0].world
    trainer = RolloutTrainer(
        Method(
            Options(
                caps if "caps" in config else None,
                log,
                config.get("old_logp_noise", 0.0),
                config.get("learn_results", False),
            ),
            lean=config.get("sampler") == "lean",
            tool=tool,
            max_rounds=config["dynamic_sampling"]["max_rounds"] if "dynamic_sampling" in config else None,
            advantage=config.get("advantage"),
            read_steps=step_rewards.reader(world, policy.tokenizer) if world else None,
            importance_ratio=config.get("importance_ratio"),
            objective=objective,
            reference=reference,
        ),
        args,
        model=policy.model,
        reward_funcs=functions,
        train_dataset=dataset,
        processing_class=policy.tokenizer,
        peft_config=lora.adapters(config.get("lora"), policy.model, args.seed),
    )
    done = fit(trainer, progress, policy.keep(config))
    policy.model = lora.merged(trainer.model, config.get("saved_dtype"))
    policy.save(workdir)

    curve, scalars = rollouts.write(out, done.history, trainer.parts.measures.ratios, log)
    parameters = lora.parameters(policy.model)
    passes = 2 + 6 * args.num_iterations + 2 * (args.beta != 0)
    passes += 2 * (args.gradient_accumulation_steps % (args.steps_per_generation * args.num_iterations) != 0)
    return Outcome(
        metrics={
            **scalars,
            **curves.first_fifths(curve, AT_FIRST),
            "parameters": parameters,
            **grpo_tasks.skipped(tasks),
        },
        health=checks + health.training(curve, scalars, done.precision),
        fit=done,
        flops_a_token=passes * (parameters - idle(policy.model)),
        formula=FORMULA,
        curve=curve,
        clean=partial(clean, workdir),
    )
