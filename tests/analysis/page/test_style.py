"""Colours and lines of the arms; a figure's files."""

import re
import zlib

import matplotlib as mpl
import pytest
from matplotlib.lines import Line2D

from analysis.page import style
from analysis.page.palette import colours


def test_an_arm_has_one_colour_in_every_report(run, quick):
    palette = colours(run.recipe.arms("cpu"))
    assert len(set(palette.values())) == 6
    assert colours(quick.recipe.arms("cpu"))["random"] == palette["random"]


def test_no_two_of_many_arms_look_alike():
    arms = [f"arm-{i}" for i in range(18)]
    lines = style.dashes(arms)
    assert len({(colour, lines[arm]) for arm, colour in colours(arms).items()}) == 18


@pytest.mark.parametrize("count", [1, 3, 4, 5])
def test_the_legend_of_panels_lies_on_the_figure_and_above_them(count):
    labels = ["verification", "backtracking", "backward chaining", "idling", "subgoals"]
    labels = labels[:count] if count > 3 else ["calls", "called", "malformed calls"][:count]
    with mpl.rc_context(style.STYLE):
        figure, axes = style.panels(["one", "two"], handles=[Line2D([], [], label=one) for one in labels])
        figure.canvas.draw()
        box = figure.legends[0].get_window_extent()
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
        assert box.y0 > axes["one"].get_window_extent().y1


@pytest.fixture
def drawn(tmp_path):
    """A figure of two panels in every format, drawn twice: the folder, and the figure's size in inches."""
    for folder in (tmp_path, tmp_path / "again"):
        folder.mkdir(exist_ok=True)
        with mpl.rc_context(style.STYLE):
            figure, axes = style.panels(["one", "two"])
            axes["one"].plot([0, 1], [0, 1])
            axes["one"].set_xlabel("a label")
            style.save(figure, folder, "figure")
    return tmp_path, figure.get_size_inches()


def test_a_pdf_is_as_wide_as_a_papers_column_and_so_is_all_on_it(drawn):
    folder, (width, height) = drawn
    pdf = (folder / "figure.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    scale = style.COLUMN / width
    assert float(box[1]) == pytest.approx(72 * 3.25)
    assert float(box[2]) == pytest.approx(72 * height * scale, abs=0.01)
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    page = next(text for text in map(zlib.decompress, streams) if b" cm" in text and b" Tf" in text)
    # one matrix, before anything is drawn; the clip is that of the whole figure, so nothing is cut
    first = re.search(rb"([\d.]+) 0 0 ([\d.]+) 0 0 cm", page)
    assert float(first[1]) == float(first[2]) == pytest.approx(scale, abs=1e-4)
    assert first.start() < page.index(b" re")
    sizes = {float(size) * scale for size in re.findall(rb"/F\d+ ([\d.]+) Tf", page)}
    assert sizes
    assert all(6 <= size <= 7.2 for size in sizes)  # points on paper
    xs = [float(x) * scale for x in re.findall(rb"([\d.]+) [\d.]+ m\n", page)]
    assert 0 <= min(xs) < max(xs) <= 72 * 3.25


@pytest.mark.parametrize("kind", style.FORMATS)
def test_the_same_numbers_give_the_same_bytes(drawn, kind):
    folder, _ = drawn
    assert (folder / f"figure.{kind}").read_bytes() == (folder / f"again/figure.{kind}").read_bytes()
