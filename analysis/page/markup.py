"""Text that the page shows as it is, made safe before it becomes markup."""

import json
import re
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

LINE = re.compile(r"(?<=[ML] )[-\d.]+ [-\d.]+(?: L [-\d.]+ [-\d.]+)+")
PLAIN = " !$'()*+,-./:;=?@_~|{}[]"  # of a data URI in double quotes, beside letters and digits


def script_json(rows: list[dict[str, Any]]) -> Markup:
    """JSON that cannot end the script element it stands in, whatever a completion contains."""
    text = json.dumps(rows, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def svg_uri(svg: str) -> Markup:
    """A drawing of matplotlib's as the `src` of an image: as text, which takes a quarter less than base64.

    Without prolog, metadata and the spaces between tags, that no drawing shows; URLs lose line breaks. Of a
    line through many points each point after the first needs no L of its own (SVG 1.1, §8.3.4).
    """
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"\s*\n\s*", " ", re.sub(r">\s+<", "><", drawing))
    drawing = re.sub(r' d="[^"]*"', lambda path: LINE.sub(_without_l, path[0]), drawing)
    # 'a' in place of "a", which would be %22a%22, where a tag has no ' already
    drawing = re.sub(r"<[^>']+>", lambda tag: tag[0].replace('"', "'"), drawing)
    return Markup("data:image/svg+xml,") + Markup(quote(drawing.strip(), safe=PLAIN))


def _without_l(line: re.Match) -> str:
    return line[0].replace(" L", "")


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
