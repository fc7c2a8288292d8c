"""What a stage minimises, by its resolved config: its row in the table of objectives.

An argument that the recipe leaves out has the default of the stage's config class.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from analysis.numbers.means import DASH
from analysis.numbers.settings import argument
from encore.recipe.batch import rollout
from encore.recipe.caps import of_stage
from encore.recipe.loss_types import CLIPPED

Config = Mapping[str, Any]
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
PLAIN = {  # advantage -> name in the conformance table, without a ratio
    "moving_average": "reinforce",
    "leave_one_out": "rloo",
    "positive": "online_rft",
    "raw": "raw",
    "best": "best",
}


def grpo(config: Config) -> dict[str, str]:
    get = partial(argument, config)
    advantage, scaled, loss = config.get("advantage"), str(get("scale_rewards")), get("loss_type")
    own = advantage not in (None, "process")
    loss = DASH if "objective" in config else loss
    return {
        "objective": name(config),
        "loss_type": loss,
        "mean over": NORMALISERS.get(loss, DASH),
        "advantage": ADVANTAGES.get(advantage or "centered", str(advantage)),
        "over std": "no" if own or scaled.lower() in ("none", "false") else scaled,
        "ratio": _ratio(config),
        "clip range": _range(clip_bounds(config)),
        "KL": _kl(config),
        "updates per rollout": _updates(config),
        "group size": str(get("num_generations")),
        "learning rate": f"{get('learning_rate'):g}",
        "also": "; ".join(_also(config)) or DASH,
    }


def policy_gradient(config: Config) -> dict[str, str]:
    get = partial(argument, config)
    args, kl = config["args"], get("kl_coefficient")
    ratio = "none" if args["loss"] == "naive" else "log / log" if get("log_ratio") else "token"
    return {
        "objective": f"{args['loss']} {args['delta']}",
        "advantage": ADVANTAGES[args["delta"]],
        "over std": "group" if args["delta"] == "normalized" else "no",
        "ratio": ratio,
        "clip range": _range(clip_bounds(config)),
        "KL": f"{kl:g} {get('kl_estimator')}" if kl else "none",
        "updates per rollout": str(args["inner_steps"]),
        "group size": str(args["num_generations"]),
        "learning rate": f"{args['learning_rate']:g}",
    }


def ppo(config: Config) -> dict[str, str]:
    get = partial(argument, config)
    return {
        "objective": "ppo-ptx" if (config.get("ptx") or {}).get("coefficient") else "ppo",
        "mean over": "all tokens of a step",
        "advantage": f"GAE, gamma {get('gamma'):g}, lambda {get('lam'):g}",
        "over std": "rollout" if get("whiten_advantages") else "no",
        "ratio": "token",
        "clip range": _range(clip_bounds(config)),
        "KL": _kl_of_ppo(config),
        "updates per rollout": _updates(config),
        "group size": str(get("num_generations")),
        "learning rate": f"{get('learning_rate'):g}",
        "also": "; ".join(_also_of_ppo(config)),
    }


def dpo(config: Config) -> dict[str, str]:
    """What a loss on given pairs does not have is a dash."""
    get = partial(argument, config)
    losses = get("loss_type")
    optimiser = config["args"].get("optim", "adamw")  # the default: AdamW, named by the version of torch
    absent = ("advantage", "over std", "ratio", "clip range", "updates per rollout", "group size")
    return {
        "objective": f"dpo, {losses if isinstance(losses, str) else ' + '.join(losses)}",
        "mean over": "pairs",
        **dict.fromkeys(absent, DASH),
        "KL": f"beta {get('beta'):g}",
        "learning rate": f"{get('learning_rate'):g}",
        "also": f"pairs: {config.get('pairs', 'all')}, {optimiser}",
    }


DESCRIBED: dict[str, Callable[[Config], dict[str, str]]] = {  # kind of stage -> its row
    "grpo": grpo,
    "policy_gradient": policy_gradient,
    "ppo": ppo,
    "dpo": dpo,
}


def name(config: Config) -> str:
    """The objective of a `grpo` stage's resolved config, as the conformance table calls it."""
    if "objective" in config:
        return config["objective"]
    get = partial(argument, config)
    advantage, ratio, loss = config.get("advantage"), config.get("importance_ratio"), get("loss_type")
    if ratio == "none":
        return PLAIN.get(advantage or "", f"{advantage or loss}, no ratio")
    if ratio == "sequence_token":
        return "gspo-token"
    noise = "-noise" if config.get("old_logp_noise") else ""
    if get("importance_sampling_level") == "sequence":
        return "gspo" + noise
    if advantage == "process":
        return "grpo-process"
    if advantage:
        return f"{PLAIN[advantage]}-clipped"
    if loss == "dapo" and config.get("dynamic_sampling"):
        return "dapo-dynamic"
    if loss != "grpo":
        return loss
    kl = "-kl" if get("beta") else ""
    return "grpo" + (noise or kl or ("-overlong" if get("mask_truncated_completions") else ""))


def clip_bounds(config: Config) -> tuple[float, float] | None:
    """The ratios at which the loss clips, 0: never; None where nothing is clipped."""
    if config["run"] == "dpo" or config.get("importance_ratio") == "none" or "objective" in config:
        return None
    low = argument(config, "epsilon")
    if config["run"] == "policy_gradient":
        return (1 - low, 1 + low) if config["args"]["loss"] == "clipped" else None
    high = argument(config, "epsilon_high")
    high = low if high is None else high
    loss = argument(config, "loss_type")
    if config["run"] == "grpo" and loss == "cispo":
        return (0.0, high)  # the largest weight itself
    return (max(1 - low, 0.0), 1 + high) if config["run"] == "ppo" or loss in CLIPPED else None


def reference_every(config: Config) -> int | None:
    """After how many steps the policy becomes the reference; None if never within the run."""
    get = partial(argument, config)
    every, last = get("ref_model_sync_steps"), get("max_steps")
    return every if get("sync_ref_model") and not 0 < last <= every else None


def _updates(config: Config) -> str:
    """Optimizer steps that are made with one rollout."""
    get = partial(argument, config)
    if lengths := rollout(config):
        return f"{lengths[0] * get('num_iterations') / lengths[1]:g}"
    size, accumulate = get("per_device_train_batch_size"), get("gradient_accumulation_steps")
    slices = get("steps_per_generation")
    slices = slices or (get("generation_batch_size") or size * accumulate) // size
    return f"{slices * get('num_iterations') / accumulate:g}"


def _ratio(config: Config) -> str:
    if "objective" in config:
        return DASH
    named = {"none": "none", "sequence_token": "sequence, gradient by token"}
    return named.get(config.get("importance_ratio", ""), str(argument(config, "importance_sampling_level")))


def _range(bounds: tuple[float, float] | None) -> str:
    return f"{bounds[0]:.6g} {DASH} {bounds[1]:.6g}" if bounds else "none"


def _kl(config: Config) -> str:
    beta = argument(config, "beta")
    if not beta:
        return "none"
    estimator = "k3 x ratio" if argument(config, "use_bias_correction_kl") else "k3"
    every = reference_every(config)
    return f"{beta:g} {estimator}" + (f", new reference every {every} steps" if every else "")


def _kl_of_ppo(config: Config) -> str:
    coefficient, target = argument(config, "kl_coef"), argument(config, "kl_target")
    if not coefficient:
        return "none"
    return f"{coefficient:g} k1 in the reward" + (f", adapted to {target:g} nats" if target else "")


def _also(config: Config) -> Iterator[str]:
    get = partial(argument, config)
    if domains := config.get("domains"):
        yield "domains " + ", ".join(f"{name} {one['share']:.0%}" for name, one in domains.items())
    if "caps" in config:
        first, *later = of_stage(config).items()
        raised = (f"{cap:,} from step {step:,} on" for step, cap in later)
        yield ", ".join([f"completions of at most {first[1]:,} tokens", *raised])
    if config.get("dynamic_sampling"):
        yield f"dynamic sampling, at most {config['dynamic_sampling']['max_rounds']} rounds"
    if tool := config.get("tool"):
        where = "in the loss" if config.get("learn_results") else "masked"
        yield f"{tool['name']}, at most {tool['calls']} calls, results {where}"
    if get("mask_truncated_completions"):
        yield "cut completions masked"
    weights = [part.get("rewards", {}) for part in (config, *config.get("domains", {}).values())]
    punished = any(own.get("soft_overlong") for own in weights)
    if config.get("soft_overlong_cache") and punished:
        yield f"soft overlong punishment in the last {config['soft_overlong_cache']} tokens"
    if config.get("old_logp_noise"):
        yield f"noise {config['old_logp_noise']:g} on old log-probabilities"
    if config.get("replay"):
        yield f"{config['replay']['share']:.0%} replay, iterations of {config['replay']['every']} steps"
    if get("entropy_coef"):
        yield f"entropy bonus {get('entropy_coef'):g}"
    if get("delta"):
        yield f"ratio at most {get('delta'):g}"


def _also_of_ppo(config: Config) -> Iterator[str]:
    get = partial(argument, config)
    rewards = config.get("rewards", {})
    rewarded = [name for name, weight in rewards.items() if weight]
    yield f"rewarded by {', '.join(name.replace('_', ' ') for name in rewarded) or 'nothing'}"
    if config.get("ensemble") == "worst":
        yield "the worst of its members"
    start = config.get("critic") or ("reward_model" if "reward_model" in rewards else "policy")
    clip = f", clipped at {get('cliprange_value'):g}" if get("cliprange_value") else ""
    yield f"critic from {start.replace('_', ' ')}, loss x {get('vf_coef'):g}{clip}"
    if get("whiten_rewards"):
        yield "rewards whitened"
    if get("missing_eos_penalty"):
        yield f"{get('missing_eos_penalty'):g} less without an end"
    if get("missing_eos_score") is not None:
        yield f"score {get('missing_eos_score'):g} without an end"
    if coefficient := (config.get("ptx") or {}).get("coefficient"):
        yield f"pretraining loss x {coefficient:g}"
