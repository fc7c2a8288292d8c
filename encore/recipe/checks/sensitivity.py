"""The key `sensitivity` of evals: what is compared, by which task, and before and after what."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from encore.errors import UserError, known
from encore.recipe.data_sets import is_data_set
from encore.recipe.sensitivity import KEY, MARK, ends, levels
from encore.worlds.text import prompt


def check_names(evals: Mapping[str, Any]) -> None:
    """Raise UserError at a checkpoint that is called like an evaluation of the key."""
    if taken := [name for name in evals.get("checkpoints", {}) if MARK in name]:
        raise UserError(
            f'checkpoints.{taken[0]}: a name with "{MARK}" is one of {KEY}; call it something else'
        )


def check(evals: Mapping[str, Any]) -> None:
    """Raise UserError, its path relative to `evals`, at a mistake in the key."""
    asked = evals[KEY]
    known(f"{KEY}.task", [asked["task"]], list(evals.get("tasks", {})), "task")
    task = evals["tasks"][asked["task"]]
    if "lm_eval" in task:
        raise UserError(f"{KEY}.task: lm-eval's {task['lm_eval']} has its own prompt; name another task")
    if is_data_set(task["task"]) and "verifier" not in task["task"]:
        raise UserError(f"{KEY}.task: nothing verifies the answers of {asked['task']}; name another task")
    if len(ends(evals)) < 2:
        raise UserError(f"{KEY}: expected a checkpoint before and one after training; there is one alone")
    for key in ("templates", "wordings"):
        for name, text in asked.get(key, {}).items():
            try:
                prompt(text, "")
            except UserError as error:
                raise UserError(f"{KEY}.{key}.{name}: {str(error).removeprefix('template: ')}") from None
    for key in ("temperatures", "backends"):
        if twice := [value for value, count in Counter(asked.get(key, [])).items() if count > 1]:
            raise UserError(f"{KEY}.{key}: {twice[0]} is there twice; remove one")
    if all(len(choices) == 1 for choices in levels(evals).values()):
        raise UserError(f"{KEY}: nothing to compare; give two templates, wordings, temperatures or backends")
