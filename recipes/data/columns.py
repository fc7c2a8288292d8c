"""What a task's key reads of a row: a column, a part of one, or a text made of several.

| `question: …`                            | reads                                                      |
|------------------------------------------|------------------------------------------------------------|
| `problem`                                | the column `problem`                                       |
| `reward_model.ground_truth`              | the field `ground_truth` of the column `reward_model`      |
| `Make {target} of {nums}.`               | the text, with these columns filled in                     |

A conversation, a list of turns, stands for its first request where a text is asked for. Turns may be written
`{role: user, content: …}` or, as ShareGPT has them, `{from: human, value: …}`.
"""

import re
from collections.abc import Mapping
from typing import Any

IN_TEXT = re.compile(r"\{([^{}]+)\}")
ROLES = {"human": "user", "gpt": "assistant"}


def names(key: str) -> list[str]:
    """The columns that a task's key names."""
    return IN_TEXT.findall(key) or [key]


def text(row: Mapping[str, Any], key: str) -> str:
    """What `key` reads of a row as text; "" for what is missing. A column of just this name comes first."""
    if key not in row and IN_TEXT.search(key):
        return IN_TEXT.sub(lambda match: _plain(row[match[1]]), key)
    return _plain(row[key])


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, dict) for part in value):
        return next((turn["content"] for turn in turns(value) if turn["role"] == "user"), "")
    return "" if value is None else str(value)


def turns(conversation: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The turns of a conversation, each with a `role` and its `content`, "" for none."""
    return [
        {
            "role": ROLES.get(role := str(turn.get("role", turn.get("from"))), role),
            "content": str(turn.get("content", turn.get("value")) or ""),
        }
        for turn in conversation
    ]
