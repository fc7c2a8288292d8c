"""The rule by which differences become decisions, on arrays, so that tests/conformance can simulate it.

Of each claim five statements are tested, each by a one-sided paired t test (statistics.hypotheses):

    claim          the claim as it stands, direction and size
    opposite       that it is false
    direction      its direction alone: d > 0 of `higher`, d < 0 of `lower`
    no difference  |d| is below the smallest effect that matters
    reverse        the other direction: d < 0 of `higher`, d > 0 of `lower`

Each is tested at the planned looks (statistics.sequential). The primary claims of a recipe are corrected by
Holm, so that the chance that any of them is wrongly called reproduced is at most 5%, whatever the others are;
the secondary ones by Benjamini and Hochberg, so that of those called reproduced 5% may be wrong. The same
holds for each of the other statements.
"""

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics.hypotheses import ALPHA, above, below, benjamini_hochberg, holm, p_claim, p_opposite
from analysis.statistics.intervals import TAIL
from analysis.statistics.sequential import sequential

STATEMENTS = ("claim", "opposite", "direction", "no difference", "reverse")


def p_values(
    differences: ArrayLike, direction: str, margin: float, smallest_effect: float, error: float = 0.0
) -> np.ndarray:
    """p-values (..., statements) of one claim, from its differences (..., seeds).

    `error` is the standard error that all differences share, of a run that all seeds share. As it is the same
    at every look, the looks depend on each other more than the planned levels suppose, which is conservative.
    A claim of no difference (`equal`) has no directions and no further statement of no difference: nan.
    """
    x = np.asarray(differences, dtype=float)
    own, opposite = p_claim(x, direction, margin, error), p_opposite(x, direction, margin, error)
    if direction == "equal":
        rest = [np.full(x.shape[:-1], np.nan)] * 3
    else:
        up, down = above(x, 0.0, error), below(x, 0.0, error)
        towards, back = (up, down) if direction == "higher" else (down, up)
        rest = [towards, p_claim(x, "equal", smallest_effect, error), back]
    return np.stack([own, opposite, *rest], axis=-1)


def adjusted(p: ArrayLike, primary: ArrayLike) -> np.ndarray:
    """Adjusted p-values (..., claims) of one statement, from those at each look (..., claims, looks).

    primary (claims,): whether a claim is one of the primary ones. nan: a look not taken, no test.
    """
    values, first = sequential(p), np.asarray(primary, dtype=bool)
    corrected = np.empty_like(values)
    corrected[..., first] = holm(values[..., first])
    corrected[..., ~first] = benjamini_hochberg(values[..., ~first])
    return corrected


def shown(adjusted_p: ArrayLike, p_now: ArrayLike) -> np.ndarray:
    """Whether a statement is shown: by a planned look, and still so by all the seeds there are.

    `p_now` is its p-value over all seeds, which must be below 2.5% as for the 95% interval that is printed:
    what a look has decided, seeds that came later may take back. They can never add a decision.
    """
    return (np.asarray(adjusted_p) < ALPHA) & (np.asarray(p_now) < TAIL)
