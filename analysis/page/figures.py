"""Figures to be drawn, and what came of them."""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure


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
