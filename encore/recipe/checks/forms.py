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
