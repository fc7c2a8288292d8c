"""The colours of arms, apart from how figures are drawn: what needs them alone need not load a library."""

from collections.abc import Sequence

# seaborn's "colorblind" and six more that differ from them, and from grey, under red- and green-blindness
PALETTE = (
    *("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161"),
    *("#23238e", "#7a1010", "#56b4e9", "#1c1c28", "#5a6cff", "#b490fc"),
)


def colours(arms: Sequence[str]) -> dict[str, str]:
    """Arm -> colour, by the arm's place in the recipe, so that every report of a recipe agrees."""
    return {arm: PALETTE[place % len(PALETTE)] for place, arm in enumerate(arms)}
