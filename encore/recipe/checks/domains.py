"""The key `domains` of a `grpo` stage: several tasks, each with its share of the prompts and its rewards."""

import math
from collections.abc import Mapping
from typing import Any

from encore.errors import UserError

OWN = ("task", "template", "share", "rewards")  # a domain has all of them (chat may stand for template)
REWARD_MODEL = "reward_model"
# advantages that read accuracy alone, or a baseline of all prompts
ACROSS = ("positive", "process", "moving_average")


def weights(stage: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """The rewards of a stage by where they stand: `rewards`, or `domains.NAME.rewards` of each domain."""
    if "domains" not in stage:
        return {"rewards": stage["rewards"]}
    return {f"domains.{name}.rewards": domain["rewards"] for name, domain in stage["domains"].items()}


def check_form(stage: Mapping[str, Any]) -> None:
    """Raise UserError unless a stage with `domains` has two or more, complete, and no task beside them."""
    domains = stage["domains"]
    for key in ("task", "template", "chat", "problems", "rewards"):
        if key in stage:
            raise UserError(f"{key}: each of domains has its own; remove {key} or domains")
    if len(domains) < 2:
        raise UserError(
            f"domains: expected at least two, got {', '.join(domains) or 'none'}; "
            "one task is written as task, template and rewards"
        )
    for name, domain in domains.items():
        for key in OWN:
            if key not in domain and not (key == "template" and "chat" in domain):
                raise UserError(f"domains.{name}.{key}: missing")
        if not any(domain["rewards"].values()):
            raise UserError(f"domains.{name}.rewards: expected one with a weight other than 0")
    together = sum(domain["share"] for domain in domains.values())
    if not math.isclose(together, 1, abs_tol=1e-6):
        raise UserError(f"domains: their shares come to {together:g}; expected 1")


def check_mixed(stage: Mapping[str, Any]) -> None:
    """Raise UserError at a key by which the rewards of one domain would reach another's advantages, or that
    needs prompts of one task."""
    args, advantage = stage["args"], stage.get("advantage")
    if args.get("scale_rewards") == "batch":
        raise UserError(
            "args.scale_rewards: batch divides the rewards of all domains by one spread; take group or none"
        )
    if args.get("multi_objective_aggregation") == "normalize_then_sum":
        raise UserError(
            "args.multi_objective_aggregation: normalize_then_sum normalises over all domains together; "
            "take sum_then_normalize"
        )
    if advantage in ACROSS:
        what = "has a baseline over all domains" if advantage == "moving_average" else "reads accuracy alone"
        raise UserError(f"advantage: {advantage} {what}; with domains take one within a prompt's group")
    for key in ("dynamic_sampling", "replay"):
        if key in stage:
            raise UserError(f"{key}: it has an order of prompts of its own; remove it or domains")
    if args.get("shuffle_dataset"):
        raise UserError("args.shuffle_dataset: domains have an order of their own; remove it")
    if args.get("max_steps", -1) <= 0:
        raise UserError("args.max_steps: missing; domains are mixed for all rollouts beforehand")


def check_reward_model(stage: Mapping[str, Any]) -> None:
    """Raise UserError unless the reward model is there where it is used, and nowhere else."""
    used = [place for place, own in weights(stage).items() if REWARD_MODEL in own]
    given = REWARD_MODEL in stage.get("needs", {})
    if used and not given:
        raise UserError(
            f"{used[0]}.reward_model: needs.reward_model is missing; name the stage that trains it"
        )
    if given and not used:
        raise UserError("needs.reward_model: no rewards use it; remove it")
    if "ensemble" in stage and not used:
        raise UserError("ensemble: rewards.reward_model is missing, there is nothing to aggregate")
