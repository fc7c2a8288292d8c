"""The learning curve of one training, which is read while the training writes it."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from analysis.watch.growing import Growing

MEASURES = {  # the trainer's metric -> its name on the page, in the order of the page
    "reward": "Reward",
    "accuracy": "Accuracy: share of right answers",
    "mean_token_accuracy": "Share of tokens predicted",
    "completions/mean_length": "Length of a completion, tokens",
    "entropy": "Entropy, nats a token",
    "kl": "KL to the reference, nats",
    "loss": "Loss",
}
# hides the loss if there is a reward: the loss of a policy gradient means nothing
HIDDEN_BY = {"loss": "reward"}
POINTS = 200  # largest number of points of a line, more than a small chart can show
LARGEST = 10**12  # largest step that is read


class Line(NamedTuple):
    """The curve of one measure in one training, as the step and the value of each point."""

    steps: Sequence[int]
    values: Sequence[float]


class Curve:
    """The curves in the file curve.csv of a training, up to the line that was read last."""

    def __init__(self, path: Path):
        self.file = Growing(path)
        self.step = 0  # the newest step
        self._points: dict[str, tuple[list[int], list[float]]] = {}

    def update(self) -> None:
        """Read the part of the file that was added since the last call."""
        lines, anew = self.file.gained()
        if anew:
            self.step, self._points = 0, {}
        for line in lines:
            step, _, rest = line.partition(",")
            name, _, value = rest.partition(",")
            if name not in MEASURES or not (step.isascii() and step.isdigit()) or len(step) > 13:
                continue
            try:
                number = float(value)
            except ValueError:
                continue
            if math.isfinite(number) and int(step) <= LARGEST:
                self.step = max(self.step, int(step))
                steps, values = self._points.setdefault(name, ([], []))
                steps.append(int(step))
                values.append(number)

    def line(self, measure: str) -> Line | None:
        """Return at most POINTS points of a measure, evenly spaced, the last one included.

        The result is None if the measure is not logged, or is hidden (HIDDEN_BY).
        """
        if measure not in self._points or HIDDEN_BY.get(measure) in self._points:
            return None
        steps, values = self._points[measure]
        every = math.ceil(len(steps) / POINTS)
        last = (len(steps) - 1) % every
        return Line(steps[last::every], values[last::every])
