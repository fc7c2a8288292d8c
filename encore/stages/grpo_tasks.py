"""What a `grpo` stage learns from: one task, or several domains; prompts, rewards and the checks of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from encore import worlds
from encore.data import domains, forms, prompts, replay
from encore.errors import UserError
from encore.models import reward_model
from encore.objectives.caps import Caps
from encore.recipe.data_sets import is_data_set
from encore.recipe.kinds.rollout import REWARD_MODEL
from encore.recipe.reward_names import OVERLONG
from encore.rewards import learned, rules, step_rewards
from encore.rewards.domains import OfDomain, routed
from encore.runtime import health
from encore.stages import rollouts
from encore.stages.policy import Policy


@dataclass(frozen=True)
class Task:
    """One of a stage's tasks; `name` is its domain, or "" where it is the only one."""

    name: str
    config: Mapping[str, Any]  # task, template, rewards, problems and, of a domain, share
    world: Any  # None: of the Hub
    weights: dict[str, float]
    rewards: dict[str, rules.Reward]
    problems: Any  # a dataset of encore.data.prompts
    checks: list[health.Check]  # of what was left out of it
    long: int | None  # prompts left out for their length; None where none is too long


def of_stage(
    config: Mapping[str, Any], inputs: Mapping[str, Path], policy: Policy, args: Any, caps: Caps
) -> list[Task]:
    """The tasks of a stage with the GRPOConfig `args`; a learned reward is loaded once for all of them."""
    scored = {}
    if REWARD_MODEL in inputs:
        scorer = reward_model.load(inputs[REWARD_MODEL]).to(args.device)
        scored[REWARD_MODEL] = _scored(config, scorer, policy.tokenizer)
    tasks = []
    for name, own in config.get("domains", {"": config}).items():
        world = worlds.of_task(own["task"])
        weights = dict(own["rewards"])
        if not name and (world or "verifier" in own["task"]):
            # accuracy is always measured, so that curves of arms with other rewards can be compared
            weights = {"accuracy": 0.0, **weights}
        ruled = [reward for reward in weights if reward != REWARD_MODEL]
        cache = config.get("soft_overlong_cache") if OVERLONG in ruled else None
        verifies = own["task"].get("verifier", "math")
        built = rules.build(ruled, world, args.seed, caps=caps, cache=cache, verifies=verifies)
        functions = dict(zip(ruled, built, strict=True)) | scored
        form = forms.of(own, policy.tokenizer)
        evaluated = config.get("decontaminate") if is_data_set(own["task"]) else None
        problems, found, long = prompts.of_part(own, form, policy.tokenizer, args.seed, evaluated)
        rewarding = {reward: functions[reward] for reward in weights}
        tasks.append(Task(name, own, world, weights, rewarding, problems, found, long))
    return tasks


def _scored(config: Mapping[str, Any], scorer: reward_model.RewardModel, tokenizer: Any) -> rules.Reward:
    """The reward by `scorer`: at the end of a completion, or by the key `aggregation` of its steps."""
    if "aggregation" not in config:
        return learned.as_reward(scorer, tokenizer, config.get("ensemble", "mean"))
    place = step_rewards.placer(worlds.of_task(config["task"]), tokenizer)
    return learned.of_steps(scorer, tokenizer, place, config["aggregation"])


def skipped(tasks: list[Task]) -> dict[str, int]:
    """How many prompts were left out for their length, where a task has a longest: `skipped/long`, …"""
    return {f"skipped/long/{task.name}".rstrip("/"): task.long for task in tasks if task.long is not None}


def rewarded(tasks: list[Task]) -> tuple[list[rules.Reward | OfDomain], list[float]]:
    """The reward functions for TRL, each of its domain's prompts alone, and their weights."""
    functions = [
        routed(function, name, task.name) if task.name else function
        for task in tasks
        for name, function in task.rewards.items()
    ]
    return functions, [weight for task in tasks for weight in task.weights.values()]


def dataset(tasks: list[Task], config: Mapping[str, Any], args: Any) -> Any:
    """The prompts in the columns that rewards read; of domains or with replay, in the order of training."""
    if "domains" in config:
        shares = {task.name: task.config["share"] for task in tasks}
        problems = {task.name: task.problems for task in tasks}
        return domains.mixed(problems, shares, domains.needed(args), args.seed)
    (problems,) = (task.problems for task in tasks)
    if "replay" in config:
        order = replay.replay_order(len(problems), args, **config["replay"], seed=args.seed)
        return problems.select(order)
    return problems


def checks(
    tasks: list[Task], rows: Any, inputs: Mapping[str, Path], policy: Policy, args: Any, cap: int
) -> list[health.Check]:
    """Checks before training, of `rows`, the stage's dataset, or of each domain.

    Raises UserError at the first error.
    """
    prompts_of_rollout = args.generation_batch_size // args.num_generations
    if not tasks[0].name:
        only = tasks[0]
        own = rollouts.checks(
            only.config, inputs, policy, rows.to_list(), only.rewards, prompts_of_rollout, cap
        )
        return [*only.checks, *own]
    found: list[health.Check] = []
    for task in tasks:
        needed = ceil(task.config["share"] * prompts_of_rollout - 1e-9)
        try:
            own = rollouts.checks(
                task.config, inputs, policy, task.problems.to_list(), task.rewards, needed, cap
            )
        except UserError as error:
            raise UserError(f"domains.{task.name}: {error}") from None
        own = [*task.checks, *own]
        for one in own:
            one["check"] += f"/{task.name}"
        found += own
    return found
