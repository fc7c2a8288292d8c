"""The colours of arms and of verdicts, in a module that does not import matplotlib."""

from collections.abc import Sequence

# seaborn's palette "colorblind", and six more colours that differ from these and from grey, even with
# red-green blindness
PALETTE = (
    *("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161"),
    *("#23238e", "#7a1010", "#56b4e9", "#1c1c28", "#5a6cff", "#b490fc"),
)

VERDICT_COLOURS = {
    "shown": "#00704a",
    "shown, smaller": "#8a6100",
    "equivalent": "#2f5d8a",
    "reversed": "#b3400b",
    "open": "#6b6b6b",
    "not tested": "#6b6b6b",
}


def colours(arms: Sequence[str]) -> dict[str, str]:
    """Return arm -> its colour, which depends on its position in `arms`, a recipe's list of all arms."""
    return {arm: PALETTE[position % len(PALETTE)] for position, arm in enumerate(arms)}
