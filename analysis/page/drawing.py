"""The `src` of an image from an SVG drawing of matplotlib, made as short as possible."""

import re
from collections.abc import Callable
from urllib.parse import quote

from markupsafe import Markup

TAG = re.compile(r"<[^>]+>")
LINE = re.compile(r"(?<=[ML] )[-\d.]+ [-\d.]+(?: L [-\d.]+ [-\d.]+)+")
# a circle around 0 as matplotlib draws it, by eight Bézier curves; a path with a hole begins with a second M
CIRCLE = re.compile(r"(?<=\")M 0 ([\d.]+) (?:C [-\d. ]+ ){8}z")
# a line between two points, which is all that its path has
STRAIGHT = re.compile(r'<path d="(M[-\d.]+ [-\d.]+l[-\d.]+(?: |(?=-))[-\d.]+)"((?: [\w-]+="[^"]*")*)/>')
# characters, other than letters and digits, that need no escape in a data URI in double quotes
PLAIN = " !$'()*+,-./:;<=?@_~|{}[]"


def svg_uri(svg: str) -> Markup:
    """Return the drawing as a data URI of escaped text, which is about half as long as base64.

    The drawing loses what nobody sees: the prolog, metadata, comments, the spaces between tags, ids that
    nothing refers to, groups without attributes and rotations by 0. A style that several elements share is
    written once, as a class, and where all uses of a shape share it, at the shape. Positions are rounded to a
    tenth of a point. In a line through many points, each point after the first is written as a step from the
    previous point (SVG 1.1, §8.3.4). A circle is written as two arcs. Straight lines of one style, such as
    the lines of a grid, are written as one path.
    """
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"\s*\n\s*", " ", re.sub(r">\s+<", "><", drawing))
    drawing = _in_tags(CIRCLE.pattern, _in_arcs, drawing)
    drawing = _in_tags(r'(?<= d=")[^"]*', lambda path: _without_spaces(LINE.sub(_in_steps, path[0])), drawing)
    drawing = _in_tags(r' ([xy])="([-\d.]+)"', lambda at: f' {at[1]}="{_short(float(at[2]))}"', drawing)
    drawing = _with_short_ids(drawing)
    drawing = _classes_at_shapes(_with_classes(drawing))
    drawing = _in_tags(r' transform="rotate\(-?0 [^"]*"', lambda _: "", drawing)
    drawing = _with_joint_lines(_without_plain_groups(drawing))
    # a tag without single quotes gets them instead of its double quotes, each of which would become %22
    drawing = re.sub(r"<[^>']+>", lambda tag: tag[0].replace('"', "'"), drawing)
    return Markup("data:image/svg+xml,") + Markup(quote(drawing.strip(), safe=PLAIN))


def _in_tags(pattern: str, by: Callable[[re.Match], str], drawing: str) -> str:
    """Replace matches of `pattern` inside tags only, because text between tags may look like an attribute."""
    return TAG.sub(lambda tag: re.sub(pattern, by, tag[0]), drawing)


def _without_plain_groups(drawing: str) -> str:
    """Return the drawing without the tags of groups that have no attribute; their content stays."""
    kept: list[bool] = []  # of each group that is open: whether its tags stay

    def tag(group: re.Match) -> str:
        if group[0] != "</g>":
            kept.append(group[0] != "<g>")
            return group[0] if kept[-1] else ""
        return "</g>" if kept.pop() else ""

    return re.sub(r"<g(?: [^>]*)?>|</g>", tag, drawing)


def _without_spaces(path: str) -> str:
    """Return a path without the spaces around its commands, which are letters, and at its end."""
    return re.sub(r" ?([A-Za-z]) ?", r"\1", path).rstrip()


def _with_joint_lines(drawing: str) -> str:
    """Return the drawing with straight lines of the same attributes in one path, the first one's.

    Lines are joined only if no group begins or ends between them, because a group may move what is in it.
    """

    def joined(part: str) -> str:
        lines: dict[str, list[str]] = {}  # attributes -> the lines that have them
        for path, attributes in STRAIGHT.findall(part):
            lines.setdefault(attributes, []).append(path)

        def line(match: re.Match) -> str:
            paths = lines.pop(match[2], [])
            return f'<path d="{"".join(paths)}"{match[2]}/>' if paths else ""

        return STRAIGHT.sub(line, part)

    return "".join(map(joined, re.split(r"(</?g\b[^>]*>)", drawing)))


def _in_steps(line: re.Match) -> str:
    """Return a line `x y L x y L …` in relative steps, `x y l dx dy …`; rounding errors do not add up."""
    first, *points = line[0].split(" L ")
    x, y = (round(float(place), 1) for place in first.split())
    start, steps = f"{_short(x)} {_short(y)}", []
    for point in points:
        to_x, to_y = map(float, point.split())
        dx, dy = round(to_x - x, 1), round(to_y - y, 1)
        x, y = x + dx, y + dy
        steps += [_short(dx), _short(dy)]
    return f"{start} l {' '.join(steps).replace(' -', '-')}"


def _short(number: float) -> str:
    """Return a number rounded to a tenth, in as few characters as SVG allows: `-.5`, `3`, `0`."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{number + 0.0:.1f}".removesuffix(".0"))


def _in_arcs(circle: re.Match) -> str:
    """Return a circle as two half circles, each an arc from one end of the vertical diameter to the other."""
    radius = float(circle[1])
    arc = f"{radius:g} {radius:g} 0 0 0 0"
    return f"M 0 {radius:g} a {arc} {-2 * radius:g} {arc} {2 * radius:g} z"


def _with_short_ids(drawing: str) -> str:
    """Return the drawing with ids `i0`, `i1`, … of what something refers to, and no others.

    References then stand without XLink (SVG 2, §16.1.4).
    """
    names: dict[str, str] = {}

    def named(reference: re.Match) -> str:
        return f"{reference[1]}#{names.setdefault(reference[2], f'i{len(names)}')}"

    def numbered(id_: re.Match) -> str:
        return f' id="{names[id_[1]]}"' if id_[1] in names else ""

    drawing = _in_tags(r"(?<= )xlink:(?=href=)| xmlns:xlink=\"[^\"]*\"", lambda _: "", drawing)
    drawing = _in_tags(r"(url\(| href=\")#([\w.-]+)", named, drawing)
    return _in_tags(r' id="([^"]*)"', numbered, drawing)


def _classes_at_shapes(drawing: str) -> str:
    """Return the drawing with the class of all uses of a shape at the shape, if it is the same one.

    A shape that has a class keeps it, and its uses lose a class that is the same.
    """
    classes: dict[str, set[str]] = {}  # id of a shape -> the classes of its uses; "" if a use has none
    for use in re.findall(r"<use [^>]*>", drawing):
        id_, name = re.search(r' href="#(\w+)"', use), re.search(r' class="(\w+)"', use)
        if id_:
            classes.setdefault(id_[1], set()).add(name[1] if name else "")
    shared = {id_: names.pop() for id_, names in classes.items() if len(names) == 1}
    moved: set[str] = set()  # ids of the shapes that have the class of their uses

    def shape(tag: re.Match) -> str:
        name, other = shared.get(tag[2]), re.search(r' class="(\w+)"', tag[0])
        if name and (other is None or other[1] == name):
            moved.add(tag[2])
            return tag[0] if other else f'{tag[1]} class="{name}"{tag[3]}'
        return tag[0]

    drawing = re.sub(r'(<path id="(\w+)"[^>]*?)(/?>)', shape, drawing)

    def without_class(tag: re.Match) -> str:
        return re.sub(r' class="\w+"', "", tag[0]) if tag[1] in moved else tag[0]

    return re.sub(r'<use href="#(\w+)"[^>]*>', without_class, drawing)


def _with_classes(drawing: str) -> str:
    """Replace each style by a class, and add the classes to the style sheet at the start of the drawing."""
    names: dict[str, str] = {}

    def named(style: re.Match) -> str:
        return f' class="{names.setdefault(style[1], f"s{len(names)}")}"'

    drawing = _in_tags(r' style="([^"]*)"', named, drawing)
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    return drawing.replace("</style>", f"{rules}</style>", 1)
