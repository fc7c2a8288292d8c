"""The key `domains` of a `grpo` stage: several tasks, each with its share of the prompts and its rewards."""

import math
from collections.abc import Mapping
from typing import Any

from encore.errors import UserError

OWN = ("task", "template", "share", "rewards")  # a domain has all of them (chat may stand for template)


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
