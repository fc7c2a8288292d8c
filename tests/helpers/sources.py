"""Which numbers of a recipe at scale paper have a source: a row of the table of facts."""

import re
from collections.abc import Iterable
from typing import Any

from papers import Number, numbers

# What follows from several fields stands for them.
STAND_FOR = {
    "args.per_device_train_batch_size": {"batch", "responses_per_update", "rollout"},
    "args.gradient_accumulation_steps": {"batch", "responses_per_update"},
    "args.steps_per_generation": {
        *("rollout", "prompts_per_rollout", "responses_per_rollout"),
        "updates_per_rollout",
    },
    "args.max_steps": {"episodes"},
    "global_batch": {"batch", "responses_per_update"},
    "args.generation_batch_size": {
        *("rollout", "prompts_per_rollout", "responses_per_rollout"),
        "updates_per_rollout",
    },
}
MARKED = re.compile(r"\bours\b|not reported|none reported|see deviations")


def unsaid(recipe: str, table: Iterable[tuple], ours: set[tuple[str, str, str]]) -> list[Number]:
    """The numbers that neither a row (recipe, stage, what, value) states nor their comment marks as ours."""
    rows = [row for row in table if row[0] == recipe]
    return [
        number
        for number in numbers(recipe)
        if not MARKED.search(number.comment)
        and (recipe, number.name, number.path) not in ours
        and not any(_states(name, what, value, number) for _, name, what, value in rows)
    ]


def _states(name: str, what: str, value: Any, number: Number) -> bool:
    if name != number.name:
        return False
    if what in STAND_FOR.get(number.path, ()):
        return True
    if number.path != what and not number.path.startswith(f"{what}."):
        return False
    for key in number.path.removeprefix(what).split(".")[1:]:
        value = value.get(key)
    return number.value in value if isinstance(value, list) else number.value == value
