"""The texts that a task's keys read from a row: a column, a part of a column, or a text with several columns.

| `question: …`                            | text                                                       |
|------------------------------------------|------------------------------------------------------------|
| `problem`                                | the column `problem`                                       |
| `reward_model.ground_truth`              | the field `ground_truth` of the column `reward_model`      |
| `Make {target} of {nums}.`               | the text, with these columns filled in                     |
| `It must pass {test_list.0}`             | the text, with the first item of the list `test_list`      |

If a text is asked for and the column holds a conversation, a list of turns, the text is its first request.
Turns may be written `{role: user, content: …}` or, as ShareGPT has them, `{from: human, value: …}`.
"""

import re
from collections.abc import Mapping
from typing import Any

IN_TEXT = re.compile(r"\{([^{}]+)\}")
PLACE = re.compile(r"\.[0-9]{1,3}$")
ROLES = {"human": "user", "gpt": "assistant"}


def names(key: str) -> list[str]:
    """Return the columns that a task's key names."""
    return [PLACE.sub("", column) for column in IN_TEXT.findall(key)] or [key]


def text(row: Mapping[str, Any], key: str) -> str:
    """Return the text that `key` reads from a row; "" for null.

    If a column has exactly this name, the column is read, and the key is not split into parts.
    """
    if key not in row and IN_TEXT.search(key):
        return IN_TEXT.sub(lambda match: _plain(_part(row, match[1])), key)
    return _plain(row[key])


def _part(row: Mapping[str, Any], column: str) -> Any:
    """Return a column, or an item of the list in a column; None if the list is too short."""
    if not (place := PLACE.search(column)):
        return row[column]
    items = row[column[: place.start()]]
    return items[number] if (number := int(place[0][1:])) < len(items) else None


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, dict) for part in value):
        return next((turn["content"] for turn in turns(value) if turn["role"] == "user"), "")
    return "" if value is None else str(value)


def turns(conversation: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the turns of a conversation, each with a `role` and its `content` ("" if it has none)."""
    return [
        {
            "role": ROLES.get(role := str(turn.get("role", turn.get("from"))), role),
            "content": str(turn.get("content", turn.get("value")) or ""),
        }
        for turn in conversation
    ]
