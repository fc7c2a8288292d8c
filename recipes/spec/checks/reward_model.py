"""Keys of a `reward_model` stage that contradict each other; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from recipes.errors import UserError
from recipes.spec.checks import demonstrations

OF_COMPARISONS = ("demonstrations", "lora", "members", "normalize")


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first mistake in a resolved `reward_model` stage that no schema shows."""
    args = stage["args"]
    if ("labels" in stage) == ("comparisons" in stage):
        raise UserError("labels, comparisons: expected one of the two")
    if "labels" in stage:
        given = [key for key in OF_COMPARISONS if key in stage or key in stage.get("needs", {})]
        if given:
            raise UserError(f"{given[0]}: a reward model with labels has none; remove it")
    if args.get("chat_template_path") or args.get("eos_token") or args.get("pad_token"):
        raise UserError(
            "args: chat_template_path, eos_token and pad_token are those of the policy; remove them"
        )
    if "demonstrations" in stage:
        if "demonstrations" in stage.get("needs", {}):
            raise UserError("demonstrations: needs.demonstrations has them; remove one of the two")
        demonstrations.check_source(stage["demonstrations"], "demonstrations")
