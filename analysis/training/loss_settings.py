"""The row of a stage in the table of objectives: its loss, described by the stage's settings."""

from collections.abc import Iterator
from functools import singledispatch

from analysis.numbers.means import DASH
from analysis.training.objective_names import OF_GRPO, name
from encore.recipe.kinds.bandit import BanditStage
from encore.recipe.kinds.distillation import DistillationStage
from encore.recipe.kinds.dpo import DpoStage
from encore.recipe.kinds.grpo import GrpoStage
from encore.recipe.kinds.kto import KtoStage
from encore.recipe.kinds.pairs import PairsStage
from encore.recipe.kinds.policy_gradient import PolicyGradientStage
from encore.recipe.kinds.ppo import PpoStage
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import Stage
from encore.recipe.loss_types import CLIPPED

NORMALISERS = {  # loss_type of TRL -> what the loss is averaged over
    "grpo": "tokens of each completion, then completions",
    "dapo": "all tokens of a step",
    "bnpo": "all tokens of a micro-batch",
    "dr_grpo": "tokens summed and divided by the cap, then completions",
    "cispo": "all tokens of a step",
    "luspo": "completions, each times its length",
}
ADVANTAGES = {  # advantage of a stage -> its formula, with the reward r
    "leave_one_out": "r - mean of the others",
    "moving_average": "r - mean of earlier r",
    "raw": "r",
    "best": "r where it is the largest, else 0",
    "positive": "1 if correct, else 0",
    "negative": "-1 if wrong, else 0",
    "weighted": "0.1 if correct, else -1",
    "pass_at_k": "pass@k of its choices - group mean",
    "above_mean": "r - group mean where it is above 0, else 0",
    "process": "steps to come, by the group",
    "centered": "r - group mean",
    "normalized": "r - group mean",
    "max": "r where it is the largest, else 0",
    "mean": "r - exact mean",
    "optimal": "r - scalar of least variance",
}
RATIOS = {"none": "none", "sequence_token": "sequence, gradient by token"}


@singledispatch
def described(stage: Stage) -> dict[str, str]:
    """Return the row of a stage in the table of objectives, column -> text; {} for kinds without a row."""
    return {}


@described.register
def _(stage: GrpoStage) -> dict[str, str]:
    args, advantage = stage.args, stage.advantage
    loss = DASH if stage.objective else args.loss_type
    ratio = RATIOS.get(stage.importance_ratio or "", args.importance_sampling_level)
    unscaled = advantage not in (None, *OF_GRPO) or args.scale_rewards == "none"
    return {
        "objective": name(stage),
        "loss_type": loss,
        "mean over": NORMALISERS.get(loss, DASH),
        "advantage": ADVANTAGES[advantage or "centered"],
        "over std": "no" if unscaled else args.scale_rewards,
        "ratio": DASH if stage.objective else ratio,
        "clip range": _range(clip_bounds(stage)),
        "KL": _kl(stage),
        "updates per rollout": _updates(stage),
        "group size": str(args.num_generations),
        "learning rate": f"{args.learning_rate:g}",
        "also": "; ".join(_also(stage)) or DASH,
    }


@described.register
def _(stage: PolicyGradientStage) -> dict[str, str]:
    args = stage.args
    ratio = "none" if args.loss == "naive" else "log / log" if args.log_ratio else "token"
    return {
        "objective": f"{args.loss} {args.delta}",
        "advantage": ADVANTAGES[args.delta],
        "over std": "group" if args.delta == "normalized" else "no",
        "ratio": ratio,
        "clip range": _range(clip_bounds(stage)),
        "KL": f"{args.kl_coefficient:g} {args.kl_estimator}" if args.kl_coefficient else "none",
        "updates per rollout": str(args.inner_steps),
        "group size": str(args.num_generations),
        "learning rate": f"{args.learning_rate:g}",
    }


@described.register
def _(stage: BanditStage) -> dict[str, str]:
    args, rewarded = stage.args, stage.args.objective == "policy_gradient"
    absent = () if rewarded else ("advantage", "over std", "ratio", "clip range")
    ratio = "token" if args.old == "sampler" else "1, to the policy itself"
    alone = f"beta {args.beta:g}" if args.beta else "none"
    place = {"none": alone, "reward": f"{args.beta:g} k1 in the reward"}
    return {
        "objective": args.objective.replace("_", " "),
        "mean over": "strings, each the sum of its tokens",
        "advantage": f"GAE, lambda {args.lam:g}" if args.advantage == "gae" else ADVANTAGES[args.advantage],
        "over std": "group" if args.advantage == "normalized" else "no",
        "ratio": ratio,
        "clip range": _range((max(1 - args.epsilon, 0.0), 1 + args.epsilon)),
        "KL": place.get(args.kl, f"{args.beta:g} {args.kl.replace('_', ' ')} in the loss"),
        "updates per rollout": str(args.inner_steps),
        "group size": str(args.group),
        "learning rate": f"{args.learning_rate:g}",
        **dict.fromkeys(absent, DASH),
    }


@described.register
def _(stage: PpoStage) -> dict[str, str]:
    args, adapted = stage.args, f", adapted to {stage.args.kl_target:g} nats" if stage.args.kl_target else ""
    return {
        "objective": "ppo-ptx" if stage.ptx and stage.ptx.coefficient else "ppo",
        "mean over": "all tokens of a step",
        "advantage": f"GAE, gamma {args.gamma:g}, lambda {args.lam:g}",
        "over std": "rollout" if args.whiten_advantages else "no",
        "ratio": "token",
        "clip range": _range(clip_bounds(stage)),
        "KL": f"{args.kl_coef:g} k1 in the reward{adapted}" if args.kl_coef else "none",
        "updates per rollout": _updates(stage),
        "group size": str(args.num_generations),
        "learning rate": f"{args.learning_rate:g}",
        "also": "; ".join(_also_of_ppo(stage)),
    }


@described.register
def _(stage: DistillationStage) -> dict[str, str]:
    """Return a row with a dash for each setting of a loss of rewards."""
    args, absent = stage.args, ("advantage", "over std", "ratio", "clip range", "KL")
    sampling = "all" if stage.on_policy == 1 else f"{stage.on_policy:.0%} of the"
    return {
        "objective": f"distillation, {(stage.divergence or '').replace('_', ' ')}",
        "mean over": "all tokens of a step",
        **dict.fromkeys(absent, DASH),
        "updates per rollout": _updates(stage),
        "group size": str(args.num_generations),
        "learning rate": f"{args.learning_rate:g}",
        "also": f"{sampling} rollouts by the policy itself"
        + ("; its own teacher" if stage.hindsight else "")
        + (", told what is wrong" if stage.feedback else ""),
    }


@described.register
def _(stage: DpoStage) -> dict[str, str]:
    row = _on_pairs(stage, f"dpo, {' + '.join(stage.args.loss_type)}", "pairs")
    gamma = f", gamma {stage.simpo_gamma:g}" if stage.simpo_gamma else ""
    return row | {"also": row["also"] + gamma}


@described.register
def _(stage: KtoStage) -> dict[str, str]:
    row = _on_pairs(stage, "kto, one of each pair" if stage.unpaired else "kto", "completions")
    weights = (stage.args.desirable_weight, stage.args.undesirable_weight)
    return row | {
        "also": row["also"] + (f", weights {weights[0]:g} and {weights[1]:g}" if weights != (1, 1) else "")
    }


def _on_pairs(stage: PairsStage, objective: str, unit: str) -> dict[str, str]:
    """Return a row with a dash for each setting that a loss on fixed pairs does not have.

    The loss is a mean over examples, which are the `unit`.
    """
    args = stage.args
    # TRL's default depends on the version of torch
    optimiser = args.optim if "optim" in args.model_fields_set else "adamw"
    absent = ("advantage", "over std", "ratio", "clip range", "updates per rollout", "group size")
    return {
        "objective": objective,
        "mean over": unit,
        **dict.fromkeys(absent, DASH),
        "KL": f"beta {args.beta:g}" if stage.has_reference else f"no reference, beta {args.beta:g}",
        "learning rate": f"{args.learning_rate:g}",
        "also": f"pairs: {stage.pairs or 'all'}, {optimiser}",
    }


def clip_bounds(stage: Stage) -> tuple[float, float] | None:
    """Return the lower and upper importance ratio at which the loss clips; None if it does not clip.

    A lower ratio of 0 means that there is no lower clip.
    """
    if isinstance(stage, PolicyGradientStage):
        epsilon = stage.args.epsilon
        return (1 - epsilon, 1 + epsilon) if stage.args.loss == "clipped" else None
    if not isinstance(stage, GrpoStage | PpoStage):
        return None
    args = stage.args
    high = args.epsilon if args.epsilon_high is None else args.epsilon_high
    if isinstance(stage, GrpoStage):
        if stage.importance_ratio == "none" or stage.objective:
            return None
        if args.loss_type == "cispo":
            return (0.0, high)  # `epsilon_high` is the largest weight itself
        if args.loss_type not in CLIPPED:
            return None
    return (max(1 - args.epsilon, 0.0), 1 + high)


def reference_every(stage: GrpoStage | PairsStage) -> int | None:
    """Return the number of steps after which the reference is replaced by the policy; None if it never is."""
    every, last = stage.args.ref_model_sync_steps, stage.args.max_steps
    return every if stage.args.sync_ref_model and not 0 < last <= every else None


def _updates(stage: RolloutStage) -> str:
    """Return the number of optimizer steps on each rollout, as text."""
    args = stage.args
    if stage.global_batch and args.generation_batch_size:
        steps = args.generation_batch_size / stage.global_batch
    else:
        size, accumulated = args.per_device_train_batch_size, args.gradient_accumulation_steps
        of_rollout = (args.generation_batch_size or size * accumulated) // size
        steps = (args.steps_per_generation or of_rollout) / accumulated
    return f"{steps * args.num_iterations:g}"


def _range(bounds: tuple[float, float] | None) -> str:
    return f"{bounds[0]:.6g} {DASH} {bounds[1]:.6g}" if bounds else "none"


def _kl(stage: GrpoStage) -> str:
    if not stage.args.beta:
        return "none"
    estimator = "k3 x ratio" if stage.args.use_bias_correction_kl else "k3"
    every = reference_every(stage)
    return f"{stage.args.beta:g} {estimator}" + (f", new reference every {every} steps" if every else "")


def _also(stage: GrpoStage) -> Iterator[str]:
    args = stage.args
    if stage.domains:
        yield "domains " + ", ".join(f"{name} {domain.share:.0%}" for name, domain in stage.domains.items())
    if stage.caps:
        (_, first), *later = sorted((int(step), cap) for step, cap in stage.caps.items())
        raised = (f"{cap:,} from step {step:,} on" for step, cap in later)
        yield ", ".join([f"completions of at most {first:,} tokens", *raised])
    if stage.dynamic_sampling:
        yield f"dynamic sampling, at most {stage.dynamic_sampling.max_rounds} rounds"
    if stage.tool:
        where = "in the loss" if stage.learn_results else "masked"
        yield f"{stage.tool.name}, at most {stage.tool.calls} calls, results {where}"
    if args.mask_truncated_completions:
        yield "cut completions masked"
    if stage.soft_overlong_cache and any(rewards.get("soft_overlong") for rewards in stage.weights.values()):
        yield f"soft overlong punishment in the last {stage.soft_overlong_cache} tokens"
    if stage.old_logp_noise:
        yield f"noise {stage.old_logp_noise:g} on old log-probabilities"
    corrected = "corrected" if args.vllm_importance_sampling_correction else "not corrected"
    if stage.max_staleness:
        yield f"staleness {stage.max_staleness}, {corrected}"
    if stage.sampler_precision:
        yield f"sampled in {stage.sampler_precision}, {corrected}"
    if stage.replay:
        yield f"{stage.replay.share:.0%} replay, iterations of {stage.replay.every} steps"
    if stage.pass_k:
        yield f"k {stage.pass_k}"
    if stage.clip_cov:
        yield f"Clip-Cov, {stage.clip_cov.share:g} of the tokens"
    if stage.kl_cov:
        yield f"KL-Cov, {stage.kl_cov.share:g} of the tokens, weight {stage.kl_cov.weight:g}"
    if args.top_entropy_quantile < 1:
        yield f"the {args.top_entropy_quantile:.0%} of the tokens with the highest entropy"
    if stage.bottom_entropy_quantile:
        yield f"the {stage.bottom_entropy_quantile:.0%} of the tokens with the lowest entropy"
    if args.entropy_coef:
        yield f"entropy bonus {args.entropy_coef:g}"
    if args.delta:
        yield f"ratio at most {args.delta:g}"


def _also_of_ppo(stage: PpoStage) -> Iterator[str]:
    args, rewards = stage.args, stage.rewards or {}
    rewarded = [name.replace("_", " ") for name, weight in rewards.items() if weight]
    yield f"rewarded by {', '.join(rewarded) or 'nothing'}"
    if stage.safety_threshold is not None:
        yield f"by the safety model where its score is below {stage.safety_threshold:g}"
    if stage.ensemble == "worst":
        yield "the worst of its members"
    start = stage.critic or ("reward_model" if "reward_model" in rewards else "policy")
    clip = f", clipped at {args.cliprange_value:g}" if args.cliprange_value else ""
    yield f"critic from {start.replace('_', ' ')}, loss x {args.vf_coef:g}{clip}"
    if args.whiten_rewards:
        yield "rewards whitened"
    if args.missing_eos_penalty:
        yield f"{args.missing_eos_penalty:g} less without an end"
    if args.missing_eos_score is not None:
        yield f"score {args.missing_eos_score:g} without an end"
    if stage.ptx and stage.ptx.coefficient:
        yield f"pretraining loss x {stage.ptx.coefficient:g}"
