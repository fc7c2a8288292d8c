"""The division of an optimizer step's batch among processes, and of a batch into pieces of like length."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from encore.errors import UserError

PIECES = 4  # pieces of a batch: more pieces pad less, but make the matrix products smaller


@dataclass(frozen=True)
class Portion:
    """The rows of an optimizer step that one process takes."""

    rows: int  # examples of a micro-batch
    micro_batches: int

    @property
    def args(self) -> dict[str, int]:
        """The portion as arguments of transformers' trainers."""
        return {
            "per_device_train_batch_size": self.rows,
            "gradient_accumulation_steps": self.micro_batches,
        }


def divided(whole: Mapping[str, int], processes: int, most: int, exactly: bool) -> Portion:
    """Return each process's portion of an optimizer step, in micro-batches of at most `most` rows.

    `whole` has key -> number of examples over all processes: of an optimizer step and then, if there is one,
    of a rollout. Both become whole micro-batches. `exactly`: a micro-batch must have `most` rows. Raises
    UserError if the numbers cannot be divided so.
    """
    for key, size in whole.items():
        if size % processes:
            fits = max(n for n in range(1, processes) if not any(s % n for s in whole.values()))
            raise UserError(f"{key}: {size} does not divide among {processes} GPUs; nearest: {fits} GPUs")
    of_each = gcd(*whole.values()) // processes
    rows = max(n for n in range(1, min(most, of_each) + 1) if not of_each % n)
    if exactly and rows != most:
        raise UserError(
            f"args.per_device_train_batch_size: {most} does not divide {of_each}, a GPU's part of the batch, "
            f"and loss_type bnpo depends on it; nearest: {rows}"
        )
    return Portion(rows, next(iter(whole.values())) // processes // rows)


def piece_rows(rows: int, smallest: int = 8) -> int:
    """Return the number of rows in a piece if `rows` rows are cut into PIECES pieces; at least `smallest`."""
    return max(smallest, -(-rows // PIECES))
