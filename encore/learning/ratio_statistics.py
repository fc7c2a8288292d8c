r"""Measurements of importance ratios: their spread, the share of tokens that the clip cuts, a histogram.

With \pi the policy and \pi_old the policy that sampled the rollout, token t of completion i has the ratio
w_{i,t} = \pi(o_{i,t}) / \pi_old(o_{i,t}), and the completion the ratio s_i = exp(1/|o_i| \sum_t log w_{i,t}).

| metric             | what it is, over the tokens and completions since the last log line               |
|--------------------|-----------------------------------------------------------------------------------|
| ratio/deviation    | max abs(w - 1)                                                                    |
| ratio/token_std    | standard deviation of w                                                           |
| ratio/sequence_std | standard deviation of s                                                           |
| ratio/at_start     | max abs(w - 1) before the first update with a rollout, where it must be 0         |
| clip_fraction      | share of tokens whose gradient the clip cuts, whichever ratio it looks at         |

Ratios are measured even if the objective has none (`importance_ratio: none`). CISPO caps weights and cuts no
gradient, so its clip_fraction is 0.
"""

import csv
import io
import math
from typing import Any

import torch

from encore.learning.resumable import State

# for tokens: number, sum and sum of squares of w - 1; for completions the same of s - 1; number of cut tokens
SUMS = 7
# edges of the histogram of log ratios: from 1e-6 to 10, four bins a factor of ten, on both sides of a bin at
# 0
POSITIVE = [10 ** (k / 4) for k in range(-24, 5)]
EDGES = [*(-edge for edge in reversed(POSITIVE)), *POSITIVE]
LEVELS = ("token", "sequence")


class RatioStatistics:
    """The sums from which the metrics of the next log line are made, and the counts of the histogram.

    Both are over all processes. The sums begin anew at each log line; the counts do not.
    """

    def __init__(self) -> None:
        self.clear()
        self.counts = torch.zeros(len(LEVELS), len(EDGES) - 1, dtype=torch.int64)

    def clear(self) -> None:
        self.sums = torch.zeros(SUMS, dtype=torch.float64)
        self.largest: dict[str, float] = {}

    def add(
        self,
        log_ratio: torch.Tensor,
        mask: torch.Tensor,
        cut: torch.Tensor,
        accelerator: Any,
        at_start: torch.Tensor | None = None,
        counted: bool = False,
    ) -> None:
        """Add a micro-batch to the sums. All tensors: (batch, time); `cut` is true where the clip cuts.

        `at_start`: the log ratio without any noise, before the first update with this rollout. `counted`:
        whether the micro-batch goes into the histogram.
        """
        real = mask.bool()
        lengths = real.sum(dim=1)
        tokens = log_ratio[real].double()
        sequences = ((log_ratio * real).sum(dim=1)[lengths > 0] / lengths[lengths > 0]).double()
        parts = [
            part
            for logs in (tokens, sequences)
            for part in (logs.new_tensor(len(logs)), logs.expm1().sum(), logs.expm1().square().sum())
        ]
        sums = torch.stack([*parts, (cut & real).sum().double()])
        tops = {"ratio/deviation": tokens}
        if at_start is not None:
            tops["ratio/at_start"] = at_start[real].double()
        zero = tokens.new_zeros(1)  # the value for a micro-batch without a token in the loss
        top = torch.stack([torch.cat([logs.expm1().abs(), zero]).max() for logs in tops.values()])
        self.sums += accelerator.reduce(sums, reduction="sum").cpu()
        top = accelerator.gather(top[None]).amax(dim=0).tolist()
        for name, value in zip(tops, top, strict=True):
            self.largest[name] = max(value, self.largest.get(name, 0.0))
        if counted:
            counts = torch.stack([_histogram(tokens), _histogram(sequences)])
            self.counts += accelerator.reduce(counts, reduction="sum").cpu()

    def flush(self) -> dict[str, float]:
        """Return the metrics since the last flush; {} if nothing was added."""
        n, x, xx, m, y, yy, cut = self.sums.tolist()
        if not n:
            return {}
        metrics = {
            **self.largest,
            "ratio/token_std": std(n, x, xx),
            "ratio/sequence_std": std(m, y, yy),
            "clip_fraction": cut / n,
        }
        self.clear()
        return metrics

    def state(self) -> State:
        return {"sums": self.sums, "largest": self.largest, "counts": self.counts}

    def restore(self, state: State) -> None:
        self.sums, self.largest, self.counts = state["sums"], dict(state["largest"]), state["counts"]

    def text(self) -> str:
        """Return the text of ratios.csv: level, low, high, and the count of log ratios in [low, high).

        Ratios beyond the edges are counted in the outermost bins.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["level", "low", "high", "count"])
        for level, row in zip(LEVELS, self.counts.tolist(), strict=True):
            for low, high, count in zip(EDGES, EDGES[1:], row, strict=False):
                writer.writerow([level, repr(low), repr(high), count])
        return out.getvalue()


def _histogram(logs: torch.Tensor) -> torch.Tensor:
    """Return how many of `logs` lie in each bin between EDGES; the outermost bins also count all beyond."""
    inner = torch.tensor(EDGES[1:-1], dtype=logs.dtype, device=logs.device)
    return torch.bincount(torch.bucketize(logs, inner, right=True), minlength=len(EDGES) - 1)


def std(n: float, x: float, xx: float) -> float:
    """Return the standard deviation of n numbers with sum x and sum of squares xx."""
    return math.sqrt(max(xx / n - (x / n) ** 2, 0.0)) if n else 0.0
