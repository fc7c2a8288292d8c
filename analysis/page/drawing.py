"""A drawing of matplotlib's as the `src` of an image, in few characters."""

import re
from collections.abc import Callable
from urllib.parse import quote

from markupsafe import Markup

TAG = re.compile(r"<[^>]+>")
LINE = re.compile(r"(?<=[ML] )[-\d.]+ [-\d.]+(?: L [-\d.]+ [-\d.]+)+")
PLAIN = " !$'()*+,-./:;=?@_~|{}[]"  # of a data URI in double quotes, beside letters and digits


def svg_uri(svg: str) -> Markup:
    """The drawing as text, which takes about half of what base64 takes.

    Without prolog, metadata and the spaces between tags, that no drawing shows; URLs lose line breaks. A
    style that stands at many elements is written once, as a class. An id that nothing refers to is left out.
    Of a line through many points each point after the first is written as a step from the point before it, to
    a tenth of a point (SVG 1.1, §8.3.4).
    """
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"\s*\n\s*", " ", re.sub(r">\s+<", "><", drawing))
    drawing = _in_tags(r' d="[^"]*"', lambda path: LINE.sub(_in_steps, path[0]), drawing)
    drawing = _with_classes(drawing)
    used = set(re.findall(r"#([\w.-]+)", drawing))
    drawing = _in_tags(r' id="([^"]*)"', lambda id_: id_[0] if id_[1] in used else "", drawing)
    # 'a' in place of "a", which would be %22a%22, where a tag has no ' already
    drawing = re.sub(r"<[^>']+>", lambda tag: tag[0].replace('"', "'"), drawing)
    return Markup("data:image/svg+xml,") + Markup(quote(drawing.strip(), safe=PLAIN))


def _in_tags(pattern: str, by: Callable[[re.Match], str], drawing: str) -> str:
    """Replaced in tags alone: text may look like an attribute."""
    return TAG.sub(lambda tag: re.sub(pattern, by, tag[0]), drawing)


def _in_steps(line: re.Match) -> str:
    """Return a line `x y L x y L …` as `x y l dx dy dx dy …`; roundings do not add up along it."""
    first, *points = line[0].split(" L ")
    x, y = map(float, first.split())
    steps = []
    for point in points:
        to_x, to_y = map(float, point.split())
        dx, dy = round(to_x - x, 1), round(to_y - y, 1)
        x, y = x + dx, y + dy
        steps += [_short(dx), _short(dy)]
    return f"{first} l {re.sub(' -', '-', ' '.join(steps))}"


def _short(number: float) -> str:
    """Return a number to a tenth, without what SVG does not need: `-.5`, `3`, `0`."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{number + 0.0:.1f}".removesuffix(".0"))


def _with_classes(drawing: str) -> str:
    """Each style as a class, in the style sheet that the drawing begins with."""
    names: dict[str, str] = {}

    def named(style: re.Match) -> str:
        return f' class="{names.setdefault(style[1], f"s{len(names)}")}"'

    drawing = _in_tags(r' style="([^"]*)"', named, drawing)
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    return drawing.replace("</style>", f"{rules}</style>", 1)
