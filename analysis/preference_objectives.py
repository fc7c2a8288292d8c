"""What stages `ppo` and `dpo` minimise, in the columns of the table of objectives."""

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.means import DASH


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
        "KL": _kl(args),
        "updates per rollout": f"{slices * args.get('num_iterations', 1) / accumulate:g}",
        "group size": str(args.get("num_generations", 1)),
        "learning rate": f"{args.get('learning_rate', 1e-6):g}",
        "also": "; ".join(_also(config)),
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


def _kl(args: Mapping[str, Any]) -> str:
    coefficient = args.get("kl_coef", 0.05)
    if not coefficient:
        return "none"
    target = args.get("kl_target")
    return f"{coefficient:g} k1 in the reward" + (f", adapted to {target:g} nats" if target else "")


def _also(config: Mapping[str, Any]) -> Iterator[str]:
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
