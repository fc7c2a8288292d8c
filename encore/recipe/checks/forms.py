"""The key `chat`, in place of a template: the chat template of a model's tokenizer."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError
from encore.worlds import prompt


def check(part: Mapping[str, Any]) -> None:
    """Raise UserError, its path relative to `part`, unless `chat` is true or a mapping, and alone."""
    if "chat" not in part:
        return
    if "template" in part:
        raise UserError("chat: template is given too; remove one of the two")
    if part["chat"] is False:
        raise UserError("chat: expected true or a mapping, got false")
    if part["chat"] is not True and "user" in part["chat"]:
        try:
            prompt(part["chat"]["user"], "")
        except UserError as error:
            raise UserError(f"chat.user: {str(error).removeprefix('template: ')}") from None


def check_demonstrations(part: Mapping[str, Any]) -> None:
    """Raise UserError where demonstrations by chat are a world's, or are to be begun for the policy."""
    if "chat" in part and "world" in part["task"]:
        raise UserError("chat: a world writes its demonstrations by a template; write one instead")
    if isinstance(part.get("chat"), Mapping) and "prefill" in part["chat"]:
        raise UserError("chat.prefill: a demonstration has the whole reply; remove it")
