"""The style of all figures, and functions that write their files: the same numbers give the same bytes.

Figures are narrow enough for a phone: at most two panels stand side by side.
"""

import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import Op, PdfFile, RendererPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from analysis.numbers.means import Mean
from analysis.page.palette import PALETTE

WIDTH = 4.8  # inches
COLUMN = 3.25  # inches: the width of a figure's PDF, which is a column of ICML's two-column style
FORMATS = ("svg", "pdf", "png")  # a figure's files; the page shows the SVG, which is always written
ROOT_TICKS = (0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # of square_root()
LINE = 0.19  # inches: the height of a line of text in a legend
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # one font: with a list, matplotlib tries each font for each word
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # titles stay here; fitting each title takes a third of the drawing time
    "axes.labelsize": 10.5,
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # TrueType fonts, which publishers ask for
    "svg.hashsalt": "encore",
}


def dashes(arms: Sequence[str]) -> dict[str, Any]:
    """Return arm -> its line style, for panels with several arms.

    The style changes after each half of the palette, so that two arms of one colour differ in style.
    """
    styles = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
    return {arm: styles[position // (len(PALETTE) // 2) % len(styles)] for position, arm in enumerate(arms)}


def panels(
    names: Sequence[str], height: float = 1.75, handles: Sequence[Artist] = (), own_x: bool = False
) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with a small panel for each name, and a mapping from names to panels.

    There are two panels in a row, with common axes. A legend of `handles` stands above all panels. height:
    inches of a panel. own_x: each panel has its own x axis.
    """
    columns = min(2, len(names))
    rows = math.ceil(len(names) / columns)
    abreast = len(handles) if len(handles) <= 3 else 2
    legend = LINE * math.ceil(len(handles) / abreast) + 0.05 if handles else 0.0
    tall = (height * rows + 0.55 if rows > 1 or columns > 1 else 2.9) + legend
    figure = Figure(figsize=(WIDTH, tall))
    room = margins(tall, left=0.72, right=0.12, bottom=0.56, top=0.26 + legend)
    if handles:
        figure.legend(
            handles=handles, loc="upper left", ncols=abreast, fontsize=9, handlelength=2.2, borderpad=0,
            bbox_to_anchor=(0.72 / WIDTH, 1 - 0.03 / tall), borderaxespad=0, columnspacing=1.6,
        )  # fmt: skip
    gaps = {"wspace": 0.08, "hspace": 0.45 if own_x else 0.27}  # between panels, as shares of a panel's size
    axes = figure.subplots(
        rows, columns, sharex=not own_x, sharey=True, squeeze=False, gridspec_kw=room | gaps
    )
    axes = axes.ravel()
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    for axis in axes[max(0, len(names) - columns) : len(names)]:  # the lowest panel of each column
        axis.xaxis.set_tick_params(labelbottom=True)
    return figure, dict(zip(names, axes, strict=False))


def stacked(
    count: int, height: float, handles: Sequence[Artist], titles: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels below one another, and the panels from top to bottom.

    The panels share the x axis. A legend of `handles` stands below them. height: inches of a panel. titles:
    whether to leave room for a title above each panel.
    """
    legend = LINE * math.ceil(len(handles) / 2)
    tall = count * height + legend + 0.75
    figure = Figure(figsize=(WIDTH, tall))
    room = margins(tall, left=0.72, right=0.14, bottom=legend + 0.6, top=0.28 if titles else 0.12)
    gap = {"hspace": 0.33 if titles else 0.12}
    axes = figure.subplots(count, 1, sharex=True, squeeze=False, gridspec_kw=room | gap)
    figure.legend(
        handles=handles, loc="lower left", ncols=2, fontsize=9, handlelength=2.2, borderpad=0,
        bbox_to_anchor=(0.03, 0.01), labelspacing=0.25, columnspacing=1.4,
    )  # fmt: skip
    return figure, list(axes.ravel())


def powers_of_two(axis: Axes) -> None:
    """Make the x axis logarithmic, with whole numbers at powers of two."""
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%d"))
    axis.xaxis.set_minor_locator(mpl.ticker.NullLocator())


def square_root(axis: Axes, largest: float) -> None:
    """Make the x axis linear in sqrt(x) from 0 to `largest`, with round ticks that do not overlap."""
    axis.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    largest = max(largest, 0.01) * 1.06
    axis.set_xlim(0, largest)
    kept: list[float] = []
    for tick in ROOT_TICKS:
        far = not kept or math.sqrt(tick) - math.sqrt(kept[-1]) > 0.07 * math.sqrt(largest)
        if tick <= largest and far:
            kept.append(tick)
    axis.set_xticks(kept, [f"{tick:g}" for tick in kept])
    axis.xaxis.set_minor_locator(mpl.ticker.NullLocator())


def banded(axis: Axes, curve: Mapping[Any, Mean], colour: str, line: Any, alpha: float, **marks: Any) -> None:
    """Draw a curve, given as x -> mean, and the intervals of its means as a band around it."""
    low, high = ([mean.ends[side] for mean in curve.values()] for side in (0, 1))
    axis.fill_between(list(curve), low, high, color=colour, alpha=alpha, lw=0)
    axis.plot(list(curve), [mean.value for mean in curve.values()], color=colour, ls=line, lw=1.6, **marks)


def powers_of_ten(axis: Axes, positive: Sequence[float] | pd.Series) -> None:
    """Make the y axis logarithmic between powers of ten that enclose all values but the lowest 1%."""
    axis.set_yscale("log", nonpositive="clip")
    low, high = np.log10(np.quantile(np.asarray(positive), [0.01, 1]))
    axis.set_ylim(10.0 ** np.floor(low - 0.01), 10.0 ** np.ceil(high + 0.01))
    axis.yaxis.set_major_locator(mpl.ticker.LogLocator(numticks=5))
    axis.yaxis.set_minor_locator(mpl.ticker.NullLocator())


def margins(tall: float, left: float, right: float, bottom: float, top: float) -> dict[str, float]:
    """Return the edges of a figure's panels, as gridspec takes them, from the margins around them in inches.

    `tall` is the height of the figure in inches. The margins are fixed, not fitted to the text: fitting takes
    as long as drawing, and with fixed margins the panels of all figures line up.
    """
    return {"left": left / WIDTH, "right": 1 - right / WIDTH, "bottom": bottom / tall, "top": 1 - top / tall}


def save(figure: Figure, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> None:
    """Write <name>.svg and, if `formats` has them, <name>.pdf and <name>.png.

    The PDF is for a paper: it is as wide as a column, and its text is 6 to 7 points high.
    """
    with mpl.rc_context(STYLE):
        text = io.StringIO()  # written by the canvas, because figure.savefig draws everything twice
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None, "Creator": None})
        # paths are rounded to a hundredth of a point, which halves the file; labels stay as they are
        short = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), text.getvalue())
        (folder / f"{name}.svg").write_text(short, encoding="utf-8")
        if "pdf" in formats:
            _print_pdf(figure, folder / f"{name}.pdf")
        if "png" in formats:
            figure.dpi = 160
            FigureCanvasAgg(figure).print_png(folder / f"{name}.png", metadata={"Software": None})


class ColumnPdf(PdfFile):
    """A PDF with a page as wide as COLUMN, to which the figure is scaled, text and lines included.

    LaTeX's \\includegraphics then needs no width, and text of 7 points is 7 points high in the paper.
    """

    def newPage(self, width: float, height: float) -> None:
        """Begin a page as wide as COLUMN, and scale what is drawn on it; width and height are in inches."""
        scale = COLUMN / width
        super().newPage(COLUMN, height * scale)
        self.output(scale, 0, 0, scale, 0, 0, Op.concat_matrix)
        self.width, self.height = width, height  # where the renderer clips, in units before scaling


def _print_pdf(figure: Figure, path: Path) -> None:
    """Write a figure as a ColumnPdf, because FigureCanvasPdf.print_pdf cannot scale."""
    figure.dpi = 72  # points per inch of a PDF
    width, height = figure.get_size_inches()
    file = ColumnPdf(path, metadata=dict.fromkeys(("CreationDate", "Creator", "Producer")))
    try:
        file.newPage(width, height)
        renderer = RendererPdf(file, 72, height, width)
        figure.draw(renderer)
        renderer.finalize()
        file.finalize()
    finally:
        file.close()
