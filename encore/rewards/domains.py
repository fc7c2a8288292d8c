"""Rewards of one domain of prompts, for a batch that has prompts of several."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from encore.errors import UserError, nearest
from encore.rewards.rules import Reward

OfDomain = Callable[..., list[float | None]]
BETWEEN = "/"  # of a reward and its domain, in the name by which the trainer knows it


def routed(reward: Reward, name: str, domain: str) -> OfDomain:
    """TRL's reward function `name/domain`: `reward` of the rows of a domain, and None of all others.

    It reads the column `domain`. TRL leaves None out of sums and means, where 0 would count. Metrics that
    `reward` logs as `rewards/name/…` are logged as `rewards/name/domain/…`.
    """

    def of_domain(
        prompts: list, completions: list, completion_ids: Any = None, **columns: Any
    ) -> list[float | None]:
        own = [i for i, other in enumerate(columns["domain"]) if other == domain]
        values: list[float | None] = [None] * len(prompts)
        if not own:
            return values

        def pick(column: Any) -> Any:
            return [column[i] for i in own] if isinstance(column, list) else column

        given = {key: pick(column) for key, column in columns.items()}
        if log := columns.get("log_metric"):
            given["log_metric"] = lambda metric, value: log(_moved(metric, name, domain), value)
        scores = reward(pick(prompts), pick(completions), pick(completion_ids), **given)
        for i, score in zip(own, scores, strict=True):
            values[i] = score
        return values

    of_domain.__name__ = f"{name}{BETWEEN}{domain}"
    return of_domain


def split(name: str) -> tuple[str, str]:
    """Reward and domain of a reward function's name; the domain is "" where the stage has one task."""
    reward, _, domain = name.partition(BETWEEN)
    return reward, domain


def check_routed(names: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise UserError where a row is of a domain that none of the reward functions of these names is for."""
    domains = sorted({split(name)[1] for name in names})
    if "" in domains:  # a reward of every row
        return
    for row in rows:
        domain = row.get("domain", "")
        if domain not in domains:
            raise UserError(f'a prompt is of the unknown domain "{domain}"{nearest(domain, domains)}')


def _moved(metric: str, name: str, domain: str) -> str:
    return metric.replace(f"rewards/{name}/", f"rewards/{name}/{domain}/", 1)
