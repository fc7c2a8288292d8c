"""How every figure looks, and how it is saved: bytes that depend on the numbers alone.

Width is chosen for a phone: a figure is one column, with panels two abreast.
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
COLUMN = 3.25  # inches: a column of the two of ICML; what the PDF of a figure is as wide as
FORMATS = ("svg", "pdf", "png")  # of a figure; the page shows the first, which is always there
LINE = 0.19  # inches of a line of text
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # not all that it may be replaced by, at each word of a drawing
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # else every title is fitted, which takes a third of the time
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
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "svg.hashsalt": "encore",
}


def dashes(arms: Sequence[str]) -> dict[str, Any]:
    """Arm -> line style in a shared panel; it changes every half palette, so no two arms look alike."""
    styles = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
    return {arm: styles[place // (len(PALETTE) // 2) % len(styles)] for place, arm in enumerate(arms)}


def panels(
    names: Sequence[str], height: float = 1.75, handles: Sequence[Artist] = (), own_x: bool = False
) -> tuple[Figure, dict[str, Axes]]:
    """One small panel a name, two abreast, on common axes, below a legend of `handles`: up to three
    in one line, more in two columns. own_x: each panel has an x axis of its own, with its labels.
    """
    columns = min(2, len(names))
    rows = math.ceil(len(names) / columns)
    abreast = len(handles) if len(handles) <= 3 else 2
    legend = LINE * math.ceil(len(handles) / abreast) + 0.05 if handles else 0.0
    tall = (height * rows + 0.55 if rows > 1 or columns > 1 else 2.9) + legend
    figure = Figure(figsize=(WIDTH, tall))
    room = margins(tall, left=0.62, right=0.12, bottom=0.56, top=0.26 + legend)
    if handles:
        figure.legend(
            handles=handles, loc="upper left", ncols=abreast, fontsize=9, handlelength=2.2, borderpad=0,
            bbox_to_anchor=(0.62 / WIDTH, 1 - 0.03 / tall), borderaxespad=0, columnspacing=1.6,
        )  # fmt: skip
    gaps = {"wspace": 0.08, "hspace": 0.45 if own_x else 0.27}  # of a panel
    axes = figure.subplots(
        rows, columns, sharex=not own_x, sharey=True, squeeze=False, gridspec_kw=room | gaps
    )
    axes = axes.ravel()
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    for axis in axes[max(0, len(names) - columns) : len(names)]:  # the last panel of each column
        axis.xaxis.set_tick_params(labelbottom=True)
    return figure, dict(zip(names, axes, strict=False))


def stacked(
    count: int, height: float, handles: Sequence[Artist], titles: bool = False
) -> tuple[Figure, list[Axes]]:
    """`count` panels under one another on a common x axis, above a legend of `handles` in two columns.

    titles: leave room for one above each panel.
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
    """A log axis of x with whole numbers at powers of two."""
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%d"))
    axis.xaxis.set_minor_locator(mpl.ticker.NullLocator())


def banded(axis: Axes, curve: Mapping[Any, Mean], colour: str, line: Any, alpha: float, **marks: Any) -> None:
    """Draw a curve, x -> mean, in a band of its intervals."""
    low, high = ([mean.ends[side] for mean in curve.values()] for side in (0, 1))
    axis.fill_between(list(curve), low, high, color=colour, alpha=alpha, lw=0)
    axis.plot(list(curve), [mean.value for mean in curve.values()], color=colour, ls=line, lw=1.6, **marks)


def powers_of_ten(axis: Axes, positive: Sequence[float] | pd.Series) -> None:
    """A log axis of y between powers of ten, around these values less their lowest hundredth."""
    axis.set_yscale("log", nonpositive="clip")
    low, high = np.log10(np.quantile(np.asarray(positive), [0.01, 1]))
    axis.set_ylim(10.0 ** np.floor(low - 0.01), 10.0 ** np.ceil(high + 0.01))
    axis.yaxis.set_major_locator(mpl.ticker.LogLocator(numticks=5))
    axis.yaxis.set_minor_locator(mpl.ticker.NullLocator())


def margins(tall: float, left: float, right: float, bottom: float, top: float) -> dict[str, float]:
    """Margins around the panels of a figure, from inches to the fractions that gridspec takes.

    They are set, not fitted: panels then line up from figure to figure, and fitting takes as long as drawing.
    """
    return {"left": left / WIDTH, "right": 1 - right / WIDTH, "bottom": bottom / tall, "top": 1 - top / tall}


def save(figure: Figure, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> None:
    """<name>.svg, .pdf and .png; no date and a fixed salt, so that the same numbers give the same bytes.

    The PDF is for a paper: as wide as a column, so its text has 6 to 7 points.
    """
    with mpl.rc_context(STYLE):
        text = io.StringIO()  # by the canvases: figure.savefig would draw everything twice
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None, "Creator": None})
        # a hundredth of a point is enough for a path, and halves the file; labels stay as they are
        short = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), text.getvalue())
        (folder / f"{name}.svg").write_text(short, encoding="utf-8")
        if "pdf" in formats:
            _print_pdf(figure, folder / f"{name}.pdf")
        if "png" in formats:
            figure.dpi = 160
            FigureCanvasAgg(figure).print_png(folder / f"{name}.png", metadata={"Software": None})


class ColumnPdf(PdfFile):
    """A PDF whose page is COLUMN wide, and all that is drawn on it, text and lines too, as much smaller.

    LaTeX's \\includegraphics then needs no width, and what is 7 points high stays so.
    """

    def newPage(self, width: float, height: float) -> None:
        scale = COLUMN / width
        super().newPage(COLUMN, height * scale)
        self.output(scale, 0, 0, scale, 0, 0, Op.concat_matrix)
        self.width, self.height = width, height  # what the renderer cuts at, which counts before the scale


def _print_pdf(figure: Figure, path: Path) -> None:
    """As FigureCanvasPdf.print_pdf, which cannot scale."""
    figure.dpi = 72  # a PDF's point
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
