"""Figures of the page: plans, each of which is drawn if there are data, and drawn figures."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from analysis.numbers.run import Run
from analysis.page.drawing import svg_uri
from analysis.page.style import FORMATS, STYLE, save


@dataclass(frozen=True)
class Plan:
    """A figure that is still to be drawn; `draw` returns None if there are no data."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure | None]
    alt_text: str = ""  # what the figure shows, in words; default: the names of the arms


@dataclass(frozen=True)
class Drawn:
    """A drawn figure with its texts; `src` is its SVG as a data URI."""

    name: str
    title: str
    caption: str
    alt_text: str
    src: Markup


def draw_all(run: Run, plans: Iterable[Plan], folder: Path, formats: Sequence[str] = FORMATS) -> list[Drawn]:
    """Draw the figures that have data into `folder`, and return them in the order of `plans`."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with mpl.rc_context(STYLE):
        for plan in plans:
            figure = plan.draw()
            if figure is not None:
                save(figure, folder, plan.name, formats)
                src = svg_uri((folder / f"{plan.name}.svg").read_text(encoding="utf-8"))
                shows = plan.alt_text or f"Arms: {', '.join(run.arms)}"
                alt_text = f"{plan.title}. {shows}. The numbers are in table.csv."
                drawn.append(Drawn(plan.name, plan.title, plan.caption, alt_text, src))
    return drawn
