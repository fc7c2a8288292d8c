"""Win rates: how often one policy's reply is better than another's to the same prompt.

For each item (a problem), a reply of one policy with the better score counts 1, with an equal score 1/2. The
win rate is the mean over all pairs of the two policies' samples, over items and over seeds.

Intervals allow for the choice of items and of seeds. If each seed has its own items, seeds are drawn with
replacement, each with its items: the variation of items is part of the variation of seeds. If all seeds have
the same items, the interval comes from the pigeonhole bootstrap (Owen 2007, Annals of Applied Statistics
1:386): items and seeds are both drawn with replacement, and the number of an item in a seed counts as often
as the product of the two counts. An item keeps both policies' replies, so comparisons stay paired. For few
seeds the interval is widened as in statistics.intervals.
"""

from collections.abc import Mapping
from functools import cache
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.numbers.means import DASH, Mean
from analysis.page.style import WIDTH, margins
from analysis.preferences.replies import BySeed, paired
from analysis.statistics.intervals import TAIL, expanded_tail, redraws

DRAWS = 2000
COLUMNS = ["of", "against", "win_rate", "low", "high", "items", "seeds"]


def better(first: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the probability (items,) that a sample of `first` beats a sample of `other`; a tie counts half.

    Both arrays have scores (items, samples).
    """
    a, b = first[:, :, None], other[:, None, :]  # (items, n, 1), (items, 1, m)
    return ((a > b) + 0.5 * (a == b)).mean(axis=(1, 2))


def estimate(chances: np.ndarray, crossed: bool, draws: int = DRAWS) -> Mean:
    """Return the mean of `chances`, win probabilities (seeds, items), with its interval; nan without any.

    crossed: whether all seeds have the same items. The interval of a single seed is over its items.
    """
    seeds, items = chances.shape
    if not chances.size:
        return Mean(np.nan, np.nan, np.nan, 0, "")
    by_seed, by_item = _drawn(seeds, items, draws)
    whole = seeds > 1 and not crossed
    resampled = by_seed @ chances.mean(axis=1) if whole else ((by_seed @ chances) * by_item).sum(axis=1)
    tail = expanded_tail(seeds) if seeds > 1 else TAIL
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Mean(
        float(chances.mean()), float(low), float(high), seeds, "seeds" if whole else "items and seeds"
    )


def same_items(first: BySeed, other: BySeed) -> bool:
    """Return whether all seeds of both policies were asked the same items."""
    return len({replies.items for side in (first, other) for replies in side.values()}) == 1


@cache
def _drawn(seeds: int, items: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of seeds (draws, seeds) and of items (draws, items) in every resample."""
    rng = np.random.default_rng(0)
    return redraws(rng, seeds, draws) / seeds, redraws(rng, items, draws) / items


def between(first: BySeed, other: BySeed, score: str = "gold") -> np.ndarray:
    """Return the probability (seeds, items) that a reply of `first` beats one of `other` by `score`.

    If seeds share both policies, these seeds count once.
    """
    rows: list[np.ndarray] = []
    seen: set[tuple[int, int]] = set()
    for seed in sorted(set(first) & set(other)):
        key = (id(first[seed]), id(other[seed]))
        if key not in seen and all(score in side[seed].scores for side in (first, other)):
            seen.add(key)
            rows.append(better(*paired(first[seed], other[seed], score)))
    if not rows or len({len(row) for row in rows}) > 1:
        return np.empty((0, 0))
    return np.stack(rows)


def matrix(replies: Mapping[str, BySeed], score: str = "gold") -> pd.DataFrame:
    """Return a row for each ordered pair of contenders: the win rate of the first, with its interval."""
    rows = []
    for first, other in combinations(replies, 2):
        chances = between(replies[first], replies[other], score)
        mean = estimate(chances, same_items(replies[first], replies[other]))
        if not mean.n:
            continue
        about = {"items": chances.shape[1], "seeds": chances.shape[0]}
        back = Mean(1 - mean.value, 1 - mean.high, 1 - mean.low, mean.n, mean.over)
        rows.append({"of": first, "against": other} | mean.columns("win_rate") | about)
        rows.append({"of": other, "against": first} | back.columns("win_rate") | about)
    return pd.DataFrame(rows, columns=COLUMNS)


def matrix_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the matrix for readers: how often the row beats the column, with the interval."""
    contenders = names(frame)
    cells = {
        (row["of"], row["against"]): f"{row['win_rate']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        for row in frame.to_dict("records")
    }
    rows = [
        {"": name}
        | {other: DASH if name == other else cells.get((name, other), DASH) for other in contenders}
        for name in contenders
    ]
    return pd.DataFrame(rows)


def names(frame: pd.DataFrame) -> list[str]:
    """Return the names of the contenders in a table of matrix(), in its order."""
    return list(dict.fromkeys([*frame.of.iloc[::2], *frame.against.iloc[::2]]))


def draw(frame: pd.DataFrame) -> Figure | None:
    """Draw the win rates as a map: green if the row surely beats the column, red if it surely loses.

    It is sure if the interval excludes 1/2. The result is None for fewer than two contenders.
    """
    contenders = names(frame)
    if len(contenders) < 2:
        return None
    longest = max(map(len, contenders))
    left = min(0.25 + 0.082 * longest, 2.0)
    cell = min((WIDTH - left - 0.1) / len(contenders), 0.75)
    narrow = cell <= 0.45
    # whether a name fits above its column; otherwise the row's number stands there
    fits = 0.082 * longest < cell
    tall = 0.42 + 0.62 * cell * len(contenders)
    figure = Figure(figsize=(WIDTH, tall))
    right = WIDTH - left - cell * len(contenders)
    axis = figure.subplots(gridspec_kw=margins(tall, left=left, right=right, bottom=0.1, top=0.32))
    by_pair = {(row["of"], row["against"]): row for row in frame.to_dict("records")}
    colours = mpl.colors.LinearSegmentedColormap.from_list("", ["#e9a487", "#ffffff", "#86c9a6"])
    for y, contender in enumerate(contenders):
        for x, other in enumerate(contenders):
            if (contender, other) not in by_pair:
                axis.text(x, y, DASH, ha="center", va="center", color="#999999")
                continue
            row = by_pair[contender, other]
            sure = row["low"] > 0.5 or row["high"] < 0.5
            ground = colours(row["win_rate"]) if sure else "#f2f2f2"
            axis.add_patch(mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, fc=ground, ec="white", lw=1.2))
            written = f"{row['win_rate']:.2f}"
            if narrow:
                written = written.removeprefix("0")
            axis.text(x, y, written, ha="center", va="center", fontsize=8.5 if narrow else 10)
    axis.set(xlim=(-0.5, len(contenders) - 0.5), ylim=(len(contenders) - 0.5, -0.5))
    axis.grid(False)
    axis.xaxis.tick_top()
    numbers = [str(number + 1) for number in range(len(contenders))]
    rows = (
        contenders
        if fits
        else [f"{name}  {number}" for name, number in zip(contenders, numbers, strict=True)]
    )
    axis.set_xticks(range(len(contenders)), contenders if fits else numbers, fontsize=9)
    axis.set_yticks(range(len(contenders)), rows, fontsize=9)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    return figure


def alt_text(frame: pd.DataFrame) -> str:
    """Return the win rates in words, with each pair once."""
    once = frame.iloc[::2]
    pairs = zip(once.of, once.against, once.win_rate, strict=True)
    return "; ".join(f"{first} beats {other} in {rate:.0%}" for first, other, rate in pairs)
