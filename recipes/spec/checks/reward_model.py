"""Keys of a `reward_model` stage that contradict each other; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from recipes import worlds
from recipes.data import corpora
from recipes.errors import UserError
from recipes.spec import schema
from recipes.spec.checks import sft


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first mistake in a resolved `reward_model` stage that no schema shows."""
    args = stage["args"]
    if args.get("chat_template_path") or args.get("eos_token") or args.get("pad_token"):
        raise UserError(
            "args: chat_template_path, eos_token and pad_token are those of the policy; remove them"
        )
    if "demonstrations" in stage:
        if "demonstrations" in stage.get("needs", {}):
            raise UserError("demonstrations: needs.demonstrations has them; remove one of the two")
        _check_demonstrations(stage["demonstrations"])


def _check_demonstrations(given: Mapping[str, Any]) -> None:
    """That `demonstrations` has what a stage `sft` takes them from: a world or a Hub dataset."""
    world = "world" in given["task"]
    task = schema.definition("task-world" if world else "task-hub-demonstrations")
    schema.check(given["task"], task, ["demonstrations", "task"])
    try:
        sft.check(given)
        if world:
            worlds.prompt(given["template"], "")
            corpora.check(worlds.make(given["task"]), given["corpus"])
    except UserError as error:
        raise UserError(f"demonstrations.{error}") from None
