"""Text that becomes markup."""

import base64
import io
import re
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from analysis.page import markup


@pytest.mark.parametrize(
    ("line", "comment"),
    [
        ("lr: 1.0e-4   # Table 2", "# Table 2"),
        ("# a whole line", "# a whole line"),
        ('title: "no # here"', ""),
        ("url: https://x.org/#part", ""),
    ],
)
def test_comments_of_the_recipe_are_marked(line, comment):
    assert line[markup.comment_start(line) :] == comment


def path(data: str) -> list[tuple[str, str]]:
    """Each number of a path with its command; pairs that follow an M without one are lines."""
    found, command, count = [], "", 0
    for word in data.split():
        if word.isalpha():
            command, count = word, 0
        found.append(("L" if command == "M" and count > 2 else command, word))
        count += 1
    return [one for one in found if one[1] not in "ML"]


def test_a_drawing_in_the_page_is_the_drawing_and_takes_less_than_base64():
    """Text that would be markup, or end the attribute or the address, too."""
    hostile = """50% <b>"&' #1</b> M 1 2 L 3 4 L 5 6"""
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1, 2, 3], [0, 1, 0.2, 0.3], "o--", label=hostile)
    figure.legend()
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text)
    uri = markup.svg_uri(text.getvalue())
    assert not re.search(r"""["<>&#\n]""", uri)
    assert len(uri) < 0.9 * len(base64.b64encode(text.getvalue().encode()))

    def drawn(svg: str) -> list[tuple]:
        """Every element but the metadata, with its attributes, as spaces count in them."""
        elements = [
            one for one in ET.fromstring(svg).iter() if "svg}" in one.tag and "metadata" not in one.tag
        ]
        return [
            (
                one.tag,
                (one.text or "").strip(),
                {key: path(value) if key == "d" else value.split() for key, value in one.attrib.items()},
            )
            for one in elements
        ]

    assert drawn(unquote(uri.removeprefix("data:image/svg+xml,"))) == drawn(text.getvalue())
