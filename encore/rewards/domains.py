"""Rewards that apply to one domain of prompts, for batches of several domains."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from encore.errors import UserError, nearest
from encore.rewards.rules import Reward

OfDomain = Callable[..., list[float | None]]
BETWEEN = "/"  # separates a reward from its domain in the trainer's name for it


def routed(reward: Reward, name: str, domain: str) -> OfDomain:
    """Return TRL's reward function `name/domain`: `reward` for rows of the domain, None for others.

    It reads the column `domain`. TRL leaves None out of sums and means, where 0 would count. Metrics that
    `reward` logs as `rewards/name/…` are logged as `rewards/name/domain/…`.
    """

    def of_domain(
        prompts: list, completions: list, completion_ids: Any = None, **columns: Any
    ) -> list[float | None]:
        rows = [i for i, other in enumerate(columns["domain"]) if other == domain]
        values: list[float | None] = [None] * len(prompts)
        if not rows:
            return values

        def pick(column: Any) -> Any:
            return [column[i] for i in rows] if isinstance(column, list) else column

        selected = {key: pick(column) for key, column in columns.items()}
        if log := columns.get("log_metric"):
            selected["log_metric"] = lambda metric, value: log(_moved(metric, name, domain), value)
        scores = reward(pick(prompts), pick(completions), pick(completion_ids), **selected)
        for i, score in zip(rows, scores, strict=True):
            values[i] = score
        return values

    of_domain.__name__ = f"{name}{BETWEEN}{domain}"
    return of_domain


def split(name: str) -> tuple[str, str]:
    """Return the reward and the domain of a reward function's name; the domain is "" with a single task."""
    reward, _, domain = name.partition(BETWEEN)
    return reward, domain


def check_routed(names: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise UserError if a row belongs to a domain that no reward function covers."""
    domains = sorted({split(name)[1] for name in names})
    if "" in domains:  # this reward applies to every row
        return
    for row in rows:
        domain = row.get("domain", "")
        if domain not in domains:
            raise UserError(f'a prompt is of the unknown domain "{domain}"{nearest(domain, domains)}')


def _moved(metric: str, name: str, domain: str) -> str:
    return metric.replace(f"rewards/{name}/", f"rewards/{name}/{domain}/", 1)
