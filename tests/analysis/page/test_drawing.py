"""Drawings as they stand in a page."""

import base64
import io
import re
import xml.etree.ElementTree as ET
from urllib.parse import unquote

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from analysis.page.drawing import svg_uri


def path(data: str) -> list[tuple[str, str]]:
    """Each number of a path with its command; pairs that follow an M without one are lines."""
    found, command, count = [], "", 0
    for word in data.split():
        if word.isalpha():
            command, count = word, 0
        found.append(("L" if command == "M" and count > 2 else command, word))
        count += 1
    return [one for one in found if one[1] not in "ML"]


def drawn(svg: str) -> list[tuple]:
    """Every element but the metadata and the style sheet, with its style and those attributes that show."""
    used = set(re.findall(r"#([\w.-]+)", svg))
    root = ET.fromstring(svg)
    sheet = "".join(one.text for one in root.iter() if one.tag.endswith("}style"))
    rules = dict(re.findall(r"\.(\w+)\{([^}]*)\}", sheet))
    found = []
    for one in root.iter():
        if "svg}" not in one.tag or one.tag.endswith(("}metadata", "}style")):
            continue
        shown = dict(one.attrib)
        if shown.get("id", "") not in used:
            shown.pop("id", None)
        if "class" in shown:
            shown["style"] = rules[shown.pop("class")]
        parts = {key: path(value) if key == "d" else value.split() for key, value in shown.items()}
        found.append((one.tag, (one.text or "").strip(), parts))
    return found


def test_a_drawing_in_the_page_is_the_drawing_and_takes_less_than_base64():
    """Text that would be markup, an attribute, or end the attribute or the address, too."""
    hostile = """50% <b style="x" id="y">"&' #1</b> M 1 2 L 3 4 L 5 6  style="x" id="y\""""
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1, 2, 3], [0, 1, 0.2, 0.3], "o--", label=hostile)
    figure.legend()
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text)
    uri = svg_uri(text.getvalue())
    assert not re.search(r"""["<>&#\n]""", uri)
    assert len(uri) < 0.65 * len(base64.b64encode(text.getvalue().encode()))
    assert drawn(unquote(uri.removeprefix("data:image/svg+xml,"))) == drawn(text.getvalue())
