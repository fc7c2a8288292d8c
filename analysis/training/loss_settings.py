"""What stages `ppo` and `dpo` minimise, in the columns of the table of objectives."""

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.numbers.means import DASH
from recipes.objectives.loss_types import CLIPPED


def ppo(config: Mapping[str, Any]) -> dict[str, str]:
    """One row, from the resolved config; defaults are those of recipes/trainers/ppo_config.py."""
    args = config["args"]
    low, accumulate = args.get("epsilon", 0.2), args.get("gradient_accumulation_steps", 1)
    size = args.get("per_device_train_batch_size", 8)
    slices = args.get("steps_per_generation") or args.get("generation_batch_size", size * accumulate) // size
    return {
        "objective": "ppo-ptx" if (config.get("ptx") or {}).get("coefficient") else "ppo",
        "mean over": "all tokens of a step",
        "advantage": f"GAE, gamma {args.get('gamma', 1.0):g}, lambda {args.get('lam', 0.95):g}",
        "over std": "rollout" if args.get("whiten_advantages", True) else "no",
        "ratio": "token",
        "clip range": f"{1 - low:.6g} {DASH} {1 + args.get('epsilon_high', low):.6g}",
        "KL": _kl_of_ppo(args),
        "updates per rollout": f"{slices * args.get('num_iterations', 1) / accumulate:g}",
        "group size": str(args.get("num_generations", 1)),
        "learning rate": f"{args.get('learning_rate', 1e-6):g}",
        "also": "; ".join(_also_of_ppo(config)),
    }


def dpo(config: Mapping[str, Any]) -> dict[str, str]:
    """One row; what a loss on given pairs does not have is a dash."""
    args = config["args"]
    losses = args.get("loss_type", "sigmoid")
    nothing = ("advantage", "over std", "ratio", "clip range", "updates per rollout", "group size")
    return {
        "objective": f"dpo, {losses if isinstance(losses, str) else ' + '.join(losses)}",
        "mean over": "pairs",
        **dict.fromkeys(nothing, DASH),
        "KL": f"beta {args.get('beta', 0.1):g}",
        "learning rate": f"{args.get('learning_rate', 1e-6):g}",
        "also": f"pairs: {config.get('pairs', 'all')}, {args.get('optim', 'adamw')}",
    }


def _kl_of_ppo(args: Mapping[str, Any]) -> str:
    coefficient = args.get("kl_coef", 0.05)
    if not coefficient:
        return "none"
    target = args.get("kl_target")
    return f"{coefficient:g} k1 in the reward" + (f", adapted to {target:g} nats" if target else "")


def _also_of_ppo(config: Mapping[str, Any]) -> Iterator[str]:
    args, rewards = config["args"], config.get("rewards", {})
    rewarded = [name for name, weight in rewards.items() if weight]
    yield f"rewarded by {', '.join(name.replace('_', ' ') for name in rewarded) or 'nothing'}"
    if config.get("ensemble") == "worst":
        yield "the worst of its members"
    start = config.get("critic") or ("reward_model" if "reward_model" in rewards else "policy")
    clipped = args.get("cliprange_value", 0.2)
    clip = f", clipped at {clipped:g}" if clipped else ""
    yield f"critic from {start.replace('_', ' ')}, loss x {args.get('vf_coef', 0.1):g}{clip}"
    if args.get("whiten_rewards"):
        yield "rewards whitened"
    if args.get("missing_eos_penalty"):
        yield f"{args['missing_eos_penalty']:g} less without an end"
    if args.get("missing_eos_score") is not None:
        yield f"score {args['missing_eos_score']:g} without an end"
    if coefficient := (config.get("ptx") or {}).get("coefficient"):
        yield f"pretraining loss x {coefficient:g}"


NORMALISERS = {  # loss_type -> what a loss is a mean of
    "grpo": "tokens of each completion, then completions",
    "dapo": "all tokens of a step",
    "bnpo": "all tokens of a micro-batch",
    "dr_grpo": "tokens summed and divided by the cap, then completions",
    "cispo": "all tokens of a step",
    "luspo": "completions, each times its length",
}


ADVANTAGES = {
    "leave_one_out": "r - mean of the others",
    "moving_average": "r - mean of earlier r",
    "raw": "r",
    "best": "r where it is the largest, else 0",
    "positive": "1 if correct, else 0",
    "process": "steps to come, by the group",
    "centered": "r - group mean",
    "normalized": "r - group mean",
    "max": "r where it is the largest, else 0",
}


def _clip(config: Mapping[str, Any]) -> tuple[float, float] | None:
    args = config["args"]
    if config["run"] == "policy_gradient":
        bound = args.get("epsilon", 0.01)
        return (1 - bound, 1 + bound) if args["loss"] == "clipped" else None
    if config.get("importance_ratio") == "none":
        return None
    if config["run"] == "dpo":
        return None
    low, loss = args.get("epsilon", 0.2), args.get("loss_type", "dapo")
    high = args.get("epsilon_high", low)
    if loss == "cispo":
        return (0.0, high)  # the largest weight itself
    return (max(1 - low, 0.0), 1 + high) if loss in CLIPPED else None


def _grpo(config: Mapping[str, Any]) -> dict[str, str]:
    args = config["args"]
    advantage = config.get("advantage")
    scaled = args.get("scale_rewards", "group")
    own = advantage not in (None, "process")
    size, accumulate = args.get("per_device_train_batch_size", 8), args.get("gradient_accumulation_steps", 1)
    slices = args.get("steps_per_generation") or args.get("generation_batch_size", size * accumulate) // size
    loss = args.get("loss_type", "dapo")
    return {
        "objective": name(config),
        "loss_type": loss,
        "mean over": NORMALISERS.get(loss, DASH),
        "advantage": ADVANTAGES.get(advantage or "centered", str(advantage)),
        "over std": "no" if own or str(scaled).lower() in ("none", "false") else str(scaled),
        "ratio": _ratio(config),
        "clip range": _range(_clip(config)),
        "KL": _kl(args),
        "updates per rollout": f"{slices * args.get('num_iterations', 1) / accumulate:g}",
        "group size": str(args.get("num_generations", 8)),
        "learning rate": f"{args.get('learning_rate', 1e-6):g}",
        "also": "; ".join(_also(config)) or DASH,
    }


def _ratio(config: Mapping[str, Any]) -> str:
    named = {"none": "none", "sequence_token": "sequence, gradient by token"}
    level = config["args"].get("importance_sampling_level", "token")
    return named.get(config.get("importance_ratio", ""), str(level))


def _range(clip: tuple[float, float] | None) -> str:
    return f"{clip[0]:.6g} {DASH} {clip[1]:.6g}" if clip else "none"


def _kl(args: Mapping[str, Any]) -> str:
    if not args.get("beta"):
        return "none"
    estimator = "k3 x ratio" if args.get("use_bias_correction_kl", True) else "k3"
    every = reference_every(args)
    return f"{args['beta']:g} {estimator}" + (f", new reference every {every} steps" if every else "")


def reference_every(args: Mapping[str, Any]) -> int | None:
    """After how many steps the policy becomes the reference; None if never within the run."""
    every, last = args.get("ref_model_sync_steps", 512), args.get("max_steps", -1)  # TRL's defaults
    return every if args.get("sync_ref_model") and not 0 < last <= every else None


def _also(config: Mapping[str, Any]) -> Iterator[str]:
    args = config["args"]
    if config.get("dynamic_sampling"):
        yield f"dynamic sampling, at most {config['dynamic_sampling']['max_rounds']} rounds"
    if args.get("mask_truncated_completions"):
        yield "cut completions masked"
    if config.get("soft_overlong_cache") and config["rewards"].get("soft_overlong"):
        yield f"soft overlong punishment in the last {config['soft_overlong_cache']} tokens"
    if config.get("old_logp_noise"):
        yield f"noise {config['old_logp_noise']:g} on old log-probabilities"
    if config.get("replay"):
        yield f"{config['replay']['share']:.0%} replay, iterations of {config['replay']['every']} steps"
    if args.get("entropy_coef"):
        yield f"entropy bonus {args['entropy_coef']:g}"
    if args.get("delta"):
        yield f"ratio at most {args['delta']:g}"


def _policy_gradient(config: Mapping[str, Any]) -> dict[str, str]:
    args = config["args"]
    kl = args.get("kl_coefficient")
    ratio = "none" if args["loss"] == "naive" else "log / log" if args.get("log_ratio") else "token"
    return {
        "objective": f"{args['loss']} {args['delta']}",
        "advantage": ADVANTAGES[args["delta"]],
        "over std": "group" if args["delta"] == "normalized" else "no",
        "ratio": ratio,
        "clip range": _range(_clip(config)),
        "KL": f"{kl:g} {args.get('kl_estimator', 'k3')}" if kl else "none",
        "updates per rollout": str(args["inner_steps"]),
        "group size": str(args["num_generations"]),
        "learning rate": f"{args['learning_rate']:g}",
    }


DESCRIBED = {
    "grpo": _grpo,
    "policy_gradient": _policy_gradient,
    "ppo": ppo,
    "dpo": dpo,
}


PLAIN = {  # advantage -> name in the conformance table, without a ratio
    "moving_average": "reinforce",
    "leave_one_out": "rloo",
    "positive": "online_rft",
    "raw": "raw",
    "best": "best",
}


def name(config: Mapping[str, Any]) -> str:
    """The objective of a `grpo` stage's resolved config, as the conformance table calls it."""
    args, advantage, ratio = config["args"], config.get("advantage"), config.get("importance_ratio")
    loss = args.get("loss_type", "dapo")  # TRL's default
    if ratio == "none":
        return PLAIN.get(advantage or "", f"{advantage or loss}, no ratio")
    if ratio == "sequence_token":
        return "gspo-token"
    noise = "-noise" if config.get("old_logp_noise") else ""
    if args.get("importance_sampling_level") == "sequence":
        return "gspo" + noise
    if advantage == "process":
        return "grpo-process"
    if advantage:
        return f"{PLAIN[advantage]}-clipped"
    if loss == "dapo" and config.get("dynamic_sampling"):
        return "dapo-dynamic"
    if loss != "grpo":
        return loss
    kl = "-kl" if args.get("beta") else ""
    return "grpo" + (noise or kl or ("-overlong" if args.get("mask_truncated_completions") else ""))
