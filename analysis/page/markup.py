"""Text that the page shows as it is, made safe before it becomes markup."""

import json
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape


def script_json(rows: Sequence[Mapping[str, object]]) -> Markup:
    """JSON that cannot end the script element it stands in, whatever a completion contains."""
    text = json.dumps(rows, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def commented_yaml(text: str) -> Markup:
    """YAML, escaped, with its comments in <i>."""
    lines = []
    for line in text.splitlines():
        at = comment_start(line)
        comment = Markup("<i>{}</i>").format(line[at:]) if at < len(line) else ""
        lines.append(escape(line[:at]) + comment)
    return Markup("\n").join(lines)


def comment_start(line: str) -> int:
    """Where the line's comment starts, or its length: a # at the start or after a space, outside quotes."""
    quote = ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and line[at - 1 : at] in ("", " "):
            return at
    return len(line)
