"""The page results/published/sizes.md: the effect of each primary claim at each size of the model."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

from analysis.numbers import in_words
from analysis.numbers.means import number, with_interval
from analysis.page import markdown
from analysis.page.style import STYLE, save
from analysis.sizes.trends import Trend, draw

FILE = "sizes.md"
HEAD = """# What size does to an effect

Nearly all records here are of models of 0.13 million parameters, and a paper's are ten thousand times larger.
So the primary claims of some recipes were tried at larger sizes too, with base models that were made on the
same documents. In the pictures a dot is a seed, a diamond a mean, and the line is the slope. *Per tenfold* is
what ten times as many parameters add to the difference, with its 95% interval (Welch's, for the line through
the means). The last column says what the slope means: *grows*, larger models show more of what is claimed;
*shrinks*, they show less; *stays*, the whole interval is smaller than what matters; *moves*, a difference
that is claimed to be none changes; *open*, the interval does not say. Written by `python -m analysis.publish
--index` from `sizes/effects.csv`.
"""


def page(by_recipe: Mapping[str, Sequence[Trend]]) -> str:
    """Return the page as Markdown: a picture and a table for each recipe."""
    return "\n".join([HEAD, *(_part(recipe, trends) for recipe, trends in by_recipe.items())])


def pictures(by_recipe: Mapping[str, Sequence[Trend]], folder: Path) -> None:
    """Draw the picture of each recipe into `folder`, as <recipe>.svg."""
    with mpl.rc_context(STYLE):
        for recipe, trends in by_recipe.items():
            save(draw(trends), folder, recipe, ("svg",))


def _part(recipe: str, trends: Sequence[Trend]) -> str:
    sizes = sorted({size for trend in trends for size in trend.effects})
    head = ["claim", *(f"{in_words.size(size)}" for size in sizes), "per tenfold", ""]
    rows = [head, ["---", *["---:"] * (len(sizes) + 1), "---"], *(_row(trend, sizes) for trend in trends)]
    told = "; ".join(f"{trend.claim.id} {trend.word}" for trend in trends)
    picture = f"![Differences over the number of parameters: {told}](sizes/{recipe}.svg)"
    table = markdown.lines(rows)
    return f"## {recipe}\n\n{picture}\n\n{table}"


def _row(trend: Trend, sizes: Sequence[int]) -> list[str]:
    metric, slope = trend.claim.test.metric, trend.slope
    means = [
        f"{number(float(np.mean(trend.effects[size])), metric)} ({len(trend.effects[size])} seeds)"
        if size in trend.effects
        else "not tested"
        for size in sizes
    ]
    says = f"{trend.claim.says} (`{trend.claim.id}`)"
    return [says, *means, with_interval(slope.estimate, slope.low, slope.high, metric), trend.word]
