"""A reference curve, which others published or a recipe expects, and how far our curve lies from it.

The reference is straight between its points. Our distance from it at a point is the mean over all steps that
are nearer to this point than to any other. So our curve may have many more points than the reference.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reference:
    """A reference curve: positions `at` on the x axis in rising order, and the value at each (points,)."""

    at: np.ndarray
    value: np.ndarray

    def near(self, at: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Return our curve at each point of the reference (points,); nan if no step is near the point.

        It is the point's value plus our mean distance. `at` and `value` are our curve (steps,).
        """
        inside = (at >= self.at[0]) & (at <= self.at[-1])
        away = value[inside] - np.interp(at[inside], self.at, self.value)
        bins = np.searchsorted((self.at[1:] + self.at[:-1]) / 2, at[inside], side="right")
        count = np.bincount(bins, minlength=len(self.at))
        total = np.bincount(bins, away, minlength=len(self.at))
        return np.where(count, self.value + total / np.maximum(count, 1), np.nan)
