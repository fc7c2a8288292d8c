"""Markup made from text that is not trusted, which is escaped first."""

import json
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape


def script_json(rows: Sequence[Mapping[str, object]]) -> Markup:
    """Return the rows as JSON for a script element, escaped so that no text in them can close the element."""
    text = json.dumps(rows, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def commented_yaml(text: str) -> Markup:
    """Return YAML as escaped markup with each comment in an <i> element."""
    lines = []
    for line in text.splitlines():
        at = comment_start(line)
        comment = Markup("<i>{}</i>").format(line[at:]) if at < len(line) else ""
        lines.append(escape(line[:at]) + comment)
    return Markup("\n").join(lines)


def comment_start(line: str) -> int:
    """Return the index of the # that starts the line's comment, or the line's length if it has no comment.

    A comment starts with a # outside quotes, at the start of the line or after a space.
    """
    quote = ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and line[at - 1 : at] in ("", " "):
            return at
    return len(line)
