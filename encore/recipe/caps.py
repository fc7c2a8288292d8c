"""The cap on a completion's length if it rises during a run: {optimizer steps done: tokens}, from step 0 on.

DeepSeek-R1-Zero goes from 32,768 to 65,536 tokens at step 8,200 (Nature 2025, Methods).
"""

import math
from collections.abc import Mapping

from encore.errors import UserError

Caps = dict[int, int]


def start(caps: Mapping[int, int], step: int) -> int:
    """Return the key in force after `step` optimizer steps."""
    return max(key for key in caps if key <= step)


def check_boundaries(caps: Caps, micro: int, window: int) -> None:
    """Raise UserError if a cap changes within a rollout of `micro` micro-steps, `window` to a step.

    Both lengths may also be given in another common unit.
    """
    every = math.lcm(micro, window) // window  # number of optimizer steps
    for step in caps:
        if step % every:
            near = max(every, round(step / every) * every)
            raise UserError(
                f"caps.{step}: a rollout lasts {micro / window:g} steps, and caps change between two; "
                f"nearest: {near}"
            )
