"""The primary claims of a recipe over the size of the model, and the figure that shows them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.numbers import in_words
from analysis.page.palette import PALETTE
from analysis.page.style import WIDTH, margins
from analysis.sizes import effects
from analysis.sizes.slopes import Slope, slope, word
from encore.recipe.claims import Claim
from encore.recipe.graph import Graph

TALL = 1.45  # inches of a claim's panel


@dataclass(frozen=True)
class Trend:
    """The effect of a claim in each seed at each number of parameters, and its slope."""

    claim: Claim
    effects: Mapping[int, Sequence[float]]
    slope: Slope

    @property
    def word(self) -> str:
        """The word for what the slope means for the claim."""
        return word(self.slope, self.claim.test)


def trends(published: Path, graph: Graph) -> dict[str, list[Trend]]:
    """Return recipe -> a trend for each primary claim with two seeds or more at each of two sizes or more."""
    kept = effects.read_effects(published / effects.FOLDER)
    by_recipe: dict[str, list[Trend]] = {}
    for recipe in sorted({effect.recipe for effect in kept}):
        at: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        larger = (effect for effect in kept if effect.recipe == recipe)
        for effect in (*effects.of_base(published, recipe, graph), *larger):
            at[effect.claim][effect.parameters].append(effect.difference)
        claims = graph.recipes[recipe].document.claims
        wide = {
            claim: {size: values for size, values in sizes.items() if len(values) > 1}
            for claim, sizes in at.items()
        }
        by_recipe[recipe] = [
            Trend(claims[claim], sizes, slope(sizes)) for claim, sizes in wide.items() if len(sizes) > 1
        ]
    return {recipe: of_recipe for recipe, of_recipe in by_recipe.items() if of_recipe}


def draw(of_recipe: Sequence[Trend]) -> Figure:
    """Draw a panel for each claim: a dot for each seed, a diamond for each mean, and the slope as a line."""
    tall = TALL * len(of_recipe) + 0.6
    figure = Figure(figsize=(WIDTH, tall))
    room = margins(tall, left=0.72, right=0.14, bottom=0.56, top=0.28) | {"hspace": 0.4}
    axes = figure.subplots(len(of_recipe), 1, sharex=True, squeeze=False, gridspec_kw=room).ravel()
    for trend, axis in zip(of_recipe, axes, strict=True):
        _panel(trend, axis)
    sizes = sorted({size for trend in of_recipe for size in trend.effects})
    axes[-1].set_xscale("log")
    axes[-1].set_xticks(sizes, [in_words.size(size) for size in sizes])
    axes[-1].xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes[-1].set_xlim(sizes[0] / 2, sizes[-1] * 2)
    axes[-1].set_xlabel("parameters")
    return figure


def _panel(trend: Trend, axis: Axes) -> None:
    sizes = np.array(list(trend.effects), dtype=float)
    means = np.array([np.mean(values) for values in trend.effects.values()])
    centre = np.log10(sizes).mean()
    ends = np.array([sizes.min() / 1.5, sizes.max() * 1.5])
    axis.axhline(0, color="#888888", lw=0.8)
    axis.plot(ends, means.mean() + trend.slope.estimate * (np.log10(ends) - centre), color=PALETTE[0], lw=1.4)
    for size, values in trend.effects.items():
        axis.plot([size] * len(values), values, "o", color=PALETTE[0], ms=3.6, alpha=0.45, mew=0)
    axis.plot(sizes, means, "D", color=PALETTE[0], ms=5.5)
    axis.set_ylabel(trend.claim.test.metric.rpartition("/")[2], fontsize=9)
    axis.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
    axis.set_title(trend.claim.id, fontsize=10)
    axis.set_title(trend.word, fontsize=9.5, loc="right")
