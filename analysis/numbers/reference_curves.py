"""A curve that others published or that is expected, and how far a curve of ours lies from it.

The reference is straight between its points. How far ours lies from it is known at each point as the mean
over what was logged nearer to this point than to the next ones. So a curve that was logged at every step is
compared with one that has a few points.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reference:
    """A reference curve: its points by rising `at`."""

    at: np.ndarray
    value: np.ndarray

    def near(self, at: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Return a curve of ours near each point: the point and its mean distance; nan where nothing is."""
        inside = (at >= self.at[0]) & (at <= self.at[-1])
        away = value[inside] - np.interp(at[inside], self.at, self.value)
        bins = np.searchsorted((self.at[1:] + self.at[:-1]) / 2, at[inside], side="right")
        count = np.bincount(bins, minlength=len(self.at))
        total = np.bincount(bins, away, minlength=len(self.at))
        return np.where(count, self.value + total / np.maximum(count, 1), np.nan)
