"""Keys of a `reward_model` stage that contradict each other: said before any job starts."""

from collections.abc import Mapping
from typing import Any

from recipes import worlds
from recipes.data import corpora
from recipes.errors import UserError
from recipes.spec.checks import sft
from recipes.spec.schema import check as fits


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first mistake in a resolved `reward_model` stage that its types do not show."""
    args = stage["args"]
    if args.get("chat_template_path") or args.get("eos_token") or args.get("pad_token"):
        raise UserError(
            "args: chat_template_path, eos_token and pad_token are those of the policy; remove them"
        )
    if "demonstrations" in stage:
        if "demonstrations" in stage.get("needs", {}):
            raise UserError("demonstrations: needs.demonstrations has them; remove one of the two")
        shown(stage["demonstrations"])


def shown(given: Mapping[str, Any]) -> None:
    """Check `demonstrations`: task, template and corpus as a stage `sft` has them."""
    world = "world" in given["task"]
    fits(
        given["task"],
        {"$ref": f"#/$defs/task-{'world' if world else 'hub-demonstrations'}"},
        ["demonstrations", "task"],
    )
    try:
        sft.check(given)
        if world:
            worlds.prompt(given["template"], "")
            corpora.check(worlds.make(given["task"]), given["corpus"])
    except UserError as error:
        raise UserError(f"demonstrations.{error}") from None
