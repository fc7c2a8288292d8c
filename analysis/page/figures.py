"""Figures to be drawn, and what came of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from analysis.numbers.run import Run
from analysis.page.style import STYLE, save
from analysis.preferences import section as preferences
from analysis.sections_figures import plans
from analysis.verdicts.claims import Verdict


@dataclass(frozen=True)
class Plan:
    """A figure that may be drawn: `draw` returns None where there are no data."""

    section: str  # verdicts, results, preferences or training
    name: str
    title: str
    caption: str
    draw: Callable[[], Figure | None]
    alt: str = ""  # what it shows, in words; default: the arms


@dataclass(frozen=True)
class Drawn:
    """A figure on disk (name.svg, name.png) with the words that go with it."""

    section: str
    name: str
    title: str
    caption: str
    alt: str


def draw_all(
    run: Run, table: pd.DataFrame, verdicts: Sequence[Verdict], folder: Path, found: preferences.Found
) -> list[Drawn]:
    """Every figure that there is data for, into `folder`; in the order of the report."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with mpl.rc_context(STYLE):
        for plan in plans(run, table, verdicts, found):
            figure = plan.draw()
            if figure is not None:
                save(figure, folder, plan.name)
                said = plan.alt or f"Arms: {', '.join(run.arms)}"
                alt = f"{plan.title}. {said}. The numbers are in table.csv."
                drawn.append(Drawn(plan.section, plan.name, plan.title, plan.caption, alt))
    return drawn
