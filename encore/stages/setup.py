"""The parts that stages with rollouts need before their trainer: policy, tasks, rewards, prompts, checks."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from encore.data import domains, forms, prompts, replay
from encore.data.token_ids import end_ids, prompt_ids
from encore.errors import UserError
from encore.learning.completions import CompletionsLog
from encore.learning.ratio_statistics import RatioStatistics
from encore.learning.trainer import Method, RolloutTrainer
from encore.models import lora
from encore.models.reward_model import RewardModel
from encore.recipe.caps import Caps
from encore.recipe.kinds import GrpoStage, PpoStage
from encore.recipe.kinds.domains import Domain
from encore.recipe.kinds.policy_gradient import PolicyGradientStage
from encore.recipe.kinds.rollout import REWARD_MODEL, SAFETY_MODEL, RolloutStage
from encore.recipe.reward_names import OVERLONG
from encore.rewards import learned, rules, step_rewards, verifiers
from encore.rewards.domains import OfDomain, routed
from encore.runtime import curves, files, gpus, health, reward_checks
from encore.stages.job import Job
from encore.stages.policy import Policy, load_policy, load_reference, loading_options, positions


@dataclass(frozen=True)
class Task:
    """A task of a stage; `name` is its domain, or "" if the stage has only one task."""

    name: str
    # the part of the stage with task, template, rewards, problems and, for a domain, its share
    part: RolloutStage | Domain
    world: Any  # the task's world; None for Hub data
    weights: dict[str, float]
    rewards: dict[str, rules.Reward]
    problems: Any  # a dataset of encore.data.prompts
    checks: list[health.Check]  # checks of the problems that were left out
    long: int | None  # number of prompts left out for their length; None if the length is not limited


@dataclass(frozen=True)
class Setup:
    """The parts of a stage that are ready before the trainer is made."""

    stage: RolloutStage
    args: Any  # a GRPOConfig
    policy: Policy
    reference: Any  # a model; None without a KL, or if the reference is the policy without its adapters
    tasks: list[Task]
    dataset: Any  # dataset of the prompts, in the columns that rewards read

    def trainer(self, method: Method) -> RolloutTrainer:
        """Return the trainer, in which each domain's rewards apply to the domain's prompts only."""
        functions: list[rules.Reward | OfDomain] = [
            routed(function, name, task.name) if task.name else function
            for task in self.tasks
            for name, function in task.rewards.items()
        ]
        self.args.reward_weights = [weight for task in self.tasks for weight in task.weights.values()]
        return RolloutTrainer(
            method,
            self.args,
            model=self.policy.model,
            reward_funcs=functions,
            train_dataset=self.dataset,
            processing_class=self.policy.tokenizer,
            peft_config=lora.adapters(self.stage.lora, self.policy.model, self.args.seed),
        )


def prepared(
    stage: RolloutStage,
    job: Job,
    args: Any,
    caps: Caps,
    scorers: Mapping[str, RewardModel],
    measured: Sequence[str],
) -> Setup:
    """Load the policy and the other parts, and return them.

    `caps`: optimizer step -> cap on a completion's tokens from then on. `scorers`: role -> reward model.
    `measured`: names of rewards that each task has at weight 0 too, if it can, to compare arms by them.
    """
    options = loading_options(stage, args)
    policy = load_policy(stage, job.inputs, **options)
    compared = isinstance(stage, PpoStage) or args.beta
    # if there are adapters, the policy without them is the reference
    adapted = stage.lora and "reference" not in job.inputs
    reference = load_reference(policy, job.inputs, **options) if compared and not adapted else None
    end_with_turns(args, stage, policy)
    tasks = tasks_of(stage, job, policy.tokenizer, caps, scorers, measured)
    return Setup(stage, args, policy, reference, tasks, _dataset(stage, tasks, args))


def end_with_turns(args: Any, stage: RolloutStage, policy: Policy) -> None:
    """Set in `args` the tokens that end a chat turn; vLLM itself knows only the checkpoint's end tokens."""
    if args.use_vllm and stage.by_chat:
        ends = {"stop_token_ids": end_ids(policy.generation, policy.tokenizer)}
        args.generation_kwargs = ends | (args.generation_kwargs or {})


# -- tasks ---------------------------------------------------------------------------------------------------


def tasks_of(
    stage: RolloutStage,
    job: Job,
    tokenizer: Any,
    caps: Caps,
    scorers: Mapping[str, RewardModel],
    measured: Sequence[str],
) -> list[Task]:
    """Return the tasks of a stage, which share learned rewards; the arguments are as in `prepared`."""
    scored = _scored(stage, scorers, tokenizer)
    parts: Mapping[str, RolloutStage | Domain] = {"": stage}
    if isinstance(stage, GrpoStage) and stage.domains is not None:
        parts = stage.domains
    tasks = []
    for name, part in parts.items():
        task = part.questions
        world = task.make_world()
        known = [*(world.rewards if world else ()), *(["accuracy"] if task.is_verified else ())]
        unnamed = () if name else measured  # a domain measures only the rewards that it names
        weights = {reward: 0.0 for reward in unnamed if reward in known} | (part.rewards or {})
        ruled = [reward for reward in weights if reward not in scored]
        cache = stage.soft_overlong_cache if OVERLONG in ruled else None
        built = rules.build(ruled, world, job.seed, caps=caps, cache=cache, verifies=task.verifies)
        functions = scored | dict(zip(ruled, built, strict=True))
        prompter = forms.of(part.form, tokenizer)
        problems, left_out, long = prompts.of_part(
            part, prompter, tokenizer, job.seed, job.evaluated, part.longest_prompt
        )
        rewards = {reward: functions[reward] for reward in weights}
        tasks.append(Task(name, part, world, weights, rewards, problems, left_out, long))
    return tasks


def _scored(
    stage: RolloutStage, scorers: Mapping[str, RewardModel], tokenizer: Any
) -> dict[str, rules.Reward]:
    """Return the rewards that reward models give: name -> reward.

    A model scores a completion at its end or, with the key `aggregation`, at the end of each step.
    """
    if isinstance(stage, GrpoStage) and stage.aggregation:
        place = step_rewards.placer(stage.questions.make_world(), tokenizer)
        model = scorers[REWARD_MODEL]
        return {REWARD_MODEL: learned.of_steps(model, tokenizer, place, stage.aggregation)}
    how = stage.ensemble or "mean"
    scored = {name: learned.as_reward(model, tokenizer, how, name) for name, model in scorers.items()}
    if isinstance(stage, PpoStage) and stage.safety_threshold is not None:
        safe = scored.pop(SAFETY_MODEL)
        scored[REWARD_MODEL] = learned.guarded(scored[REWARD_MODEL], safe, stage.safety_threshold)
    return scored


def skipped(tasks: Sequence[Task]) -> dict[str, int]:
    """Return the number of prompts that were too long: `skipped/long`, or `skipped/long/DOMAIN` by domain."""
    return {f"skipped/long/{task.name}".rstrip("/"): task.long for task in tasks if task.long is not None}


def _dataset(stage: RolloutStage, tasks: Sequence[Task], args: Any) -> Any:
    """Return the prompts and the columns that rewards read; with domains or replay, in the order of use."""
    if not isinstance(stage, GrpoStage):
        return tasks[0].problems
    if stage.domains is not None:
        shares = {name: domain.share or 0.0 for name, domain in stage.domains.items()}
        problems = {task.name: task.problems for task in tasks}
        return domains.mixed(problems, shares, domains.needed(args), args.seed)
    (task,) = tasks
    order = [*range(len(task.problems))] * stage.copies
    if stage.replay:
        order = replay.replay_order(len(order), args, stage.replay.every, stage.replay.share, seed=args.seed)
    return task.problems.select(order)


# -- checks --------------------------------------------------------------------------------------------------


def checks(ready: Setup, job: Job, cap: int) -> list[health.Check]:
    """Return the checks before training; `cap` is the largest number of tokens of a completion.

    Raises UserError at the first error.
    """
    args = ready.args
    results: list[health.Check] = []
    prompts_of_rollout = args.generation_batch_size // args.num_generations
    for task in ready.tasks:
        if not isinstance(task.part, Domain):
            rows = ready.dataset.to_list()
            task_checks = before_rollouts(
                task.part, job, ready.policy, rows, task.rewards, prompts_of_rollout, cap
            )
            return [*task.checks, *task_checks]
        needed, rows = ceil((task.part.share or 0.0) * prompts_of_rollout - 1e-9), task.problems.to_list()
        try:
            task_checks = before_rollouts(task.part, job, ready.policy, rows, task.rewards, needed, cap)
        except UserError as error:
            raise UserError(f"domains.{task.name}: {error}") from None
        for check in (*task.checks, *task_checks):
            check["check"] += f"/{task.name}"
            results.append(check)
    return results


def before_rollouts(
    part: RolloutStage | PolicyGradientStage | Domain,
    job: Job,
    policy: Policy,
    problems: Sequence[Mapping[str, Any]],
    rewards: Mapping[str, reward_checks.Reward],
    needed: int,
    cap: int,
) -> list[health.Check]:
    """Return the checks of one task before training. Raises UserError at the first error.

    `needed`: number of the task's prompts in a rollout. `cap`: largest number of tokens of a completion.
    """
    texts = [row["prompt"] for row in problems]
    longest = max(map(len, prompt_ids(texts, policy.tokenizer)))
    return health.stop_at_errors(
        [
            health.enough_prompts(len(problems), needed),
            health.context(longest, cap, positions(policy.model)),
            *reward_checks.before_sampling(
                part.put,
                job.inputs.get("policy"),
                policy.tokenizer,
                problems,
                rewards,
                verifiers.answer_suffices(part.questions),
            ),
        ]
    )


# -- the record of rollouts ----------------------------------------------------------------------------------


def opened(job: Job) -> CompletionsLog | None:
    """Return the log of completions in the workdir; training cuts it back to the step where it resumes.

    If a stage has several processes, only the first has a log, for the rollouts of all; the others get None.
    """
    return CompletionsLog(job.workdir / "completions.jsonl") if gpus.first() else None


def record(
    job: Job, history: Sequence[dict[str, Any]], ratios: RatioStatistics, log: CompletionsLog | None
) -> tuple[list[curves.Row], dict[str, float]]:
    """Write timing.csv, ratios.csv and completions.jsonl; return the curve without times, and its scalars."""
    curve = curves.rows(history)
    files.write(job.out.with_name("timing.csv"), curves.text(curves.timing(curve)))
    files.write(job.out.with_name("ratios.csv"), ratios.text())
    if log:
        log.flush()
        shutil.copyfile(log.path, job.out.with_name("completions.jsonl"))
    curve = curves.deterministic(curve)
    return curve, curves.scalars(curve)
