"""The caps on a completion's length, if they rise during a run: {optimizer steps done: cap in tokens}.

DeepSeek-R1-Zero goes from 32,768 to 65,536 tokens at step 8,200 (Nature 2025, Methods).
"""

import math
from collections.abc import Mapping

from encore.errors import UserError

Caps = dict[int, int]


def start(caps: Mapping[int, int], step: int) -> int:
    """Return the key of the cap that applies after `step` optimizer steps."""
    return max(key for key in caps if key <= step)


def check_boundaries(caps: Caps, micro: int, window: int) -> None:
    """Raise UserError if a cap changes at a step at which no rollout ends.

    `micro` is the number of micro-batches in all updates on one rollout, `window` the number in an optimizer
    step. Both may also be given in another common unit, such as completions.
    """
    every = math.lcm(micro, window) // window  # number of optimizer steps
    for step in caps:
        if step % every:
            near = max(every, round(step / every) * every)
            raise UserError(
                f"caps.{step}: a rollout lasts {micro / window:g} steps, and caps change between two; "
                f"nearest: {near}"
            )
