"""Drawings as they stand in a page."""

import base64
import io
import re
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from analysis.page.drawing import svg_uri


def path(data: str) -> tuple[list[str], list[float]]:
    """The commands of a path, one a point, and the coordinates of all points; steps of l are added up."""
    commands, places, command, point = [], [], "", []
    for word in re.findall(r"[A-Za-z]|-?(?:\d+\.?\d*|\.\d+)", data):
        if word.isalpha():
            command = word
            commands += [word] if word == "z" else []
            continue
        point.append(float(word))
        if len(point) == 2:
            if command == "l":
                point = [place + step for place, step in zip(places[-2:], point, strict=True)]
            places += point
            commands.append(command.upper())
            command, point = "L" if command == "M" else command, []
    return commands, places


CURVES = r'"M 0 ([\d.]+) (?:C [-\d. ]+ ){8}z ?"'
ARCS = r"'M0 ([\d.]+)a\1 \1 0 0 0 0 (-[\d.]+) \1 \1 0 0 0 0 ([\d.]+)z'"


def with_styles_at_uses(drawing: ET.Element) -> ET.Element:
    """The drawing with the style that shows at each use of a shape, which is the shape's before the use's."""
    styles = {
        f"#{element.get('id')}": element.attrib.pop("style")
        for element in drawing.iter()
        if element.get("id") and element.get("style")
    }
    for element in drawing.iter():
        if element.get("href") in styles:
            element.set("style", styles[element.get("href")])
    return drawing


def alike(svg: str) -> ET.Element:
    """The drawing with styles in place of classes, numbers in place of ids, and of circles the radius alone.

    The ids are numbered in the order in which something first refers to them.
    """
    svg = re.sub(CURVES, r'"" r="\1"', re.sub(r"\s*\n\s*", " ", svg))
    svg = re.sub(ARCS, r"'' r='\1'", svg.replace("xlink:href", "href"))
    rules = dict(re.findall(r"\.(\w+)\{([^}]*)\}", svg))
    svg = re.sub(r"<style.*?</style>", "", svg)
    svg = re.sub(r" class=.(\w+).", lambda name: f' style="{rules[name[1]]}"', svg)
    ids = list(dict.fromkeys(re.findall(r"(?:url\(|href=.)#([\w.-]+)", svg)))
    svg = re.sub(r"(url\(|href=.)#([\w.-]+)", lambda to: f"{to[1]}#{ids.index(to[2])}", svg)
    numbered = r"""(?<= )id=["']([\w.-]+)["']"""
    return with_styles_at_uses(
        ET.fromstring(re.sub(numbered, lambda id_: f'id="{ids.index(id_[1])}"' if id_[1] in ids else "", svg))
    )


def drawn(svg: str) -> tuple[list[tuple], list[tuple]]:
    """Every element but the metadata and the style sheet, with its style and those attributes that show.

    First all in their order but the straight lines, which come second, by their places.
    """
    elements, lines = [], []
    for element in alike(svg).iter():
        if "svg}" not in element.tag or element.tag.endswith("}metadata"):
            continue
        shown = dict(element.attrib)
        if re.match(r"rotate\(-?0 ", shown.get("transform", "")):
            shown.pop("transform")  # by no angle
        if element.tag.endswith("}g") and not shown:
            continue
        data = shown.pop("d", "")
        if re.fullmatch(r"(M ?[-\d.]+ [-\d.]+ ?[lL] ?[-\d.]+ ?[-\d.]+ ?)+", data) and "id" not in shown:
            ends = [path(line)[1] for line in re.findall(r"M[^M]+", data)]
            lines += [(place, shown) for place in ends]
            continue
        commands, places = path(data)
        places += [float(shown.pop(axis)) for axis in "xy" if axis in shown]
        parts = {key: value.split() for key, value in shown.items()} | {"d": commands}
        elements.append((element.tag, (element.text or "").strip(), parts, pytest.approx(places, abs=0.051)))
    return elements, sorted(lines, key=lambda line: [round(place) for place in line[0]])


def test_a_drawing_in_the_page_is_the_drawing_and_takes_less_than_base64():
    """Text that would be markup, an attribute, or end the attribute or the address, too."""
    hostile = """50% <b style="x" id="y">"&' #1</b> M 1 2 L 3 4 L 5 6  style="x" id="y\""""
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([0, 1, 2, 3], [0, 1, 0.2, 0.3], "o--", label=hostile)
    axes.bar([2], [0.5], hatch="//")
    axes.grid(True)
    figure.legend()
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text)
    uri = svg_uri(text.getvalue())
    assert not re.search(r"""[">&#\n]""", uri)
    assert len(uri) < 0.65 * len(base64.b64encode(text.getvalue().encode()))
    drawing = unquote(uri.removeprefix("data:image/svg+xml,"))
    elements, lines = drawn(text.getvalue())
    in_page, lines_in_page = drawn(drawing)
    assert in_page == [(*rest, places.expected) for *rest, places in elements]
    assert len(lines) > 8  # of the grid
    assert lines_in_page == [(pytest.approx(places, abs=0.051), shown) for places, shown in lines]
    assert drawing.count("<path") < text.getvalue().count("<path") - 6


def test_roundings_do_not_add_up_along_a_line():
    points = [(0.04 * i, 100 - 0.07 * i) for i in range(500)]
    data = f"M {' L '.join(f'{x:.2f} {y:.2f}' for x, y in points)}"
    uri = svg_uri(f'<svg><style></style><path d="{data}"/></svg>')
    (steps,) = re.findall(r"d='([^']*)'", unquote(uri))
    assert len(steps) < 0.6 * len(data)
    commands, places = path(steps)
    assert commands == ["M", *["L"] * 499]
    assert places == pytest.approx([place for point in points for place in point], abs=0.051)
