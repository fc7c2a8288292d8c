"""The soft overlong punishment: a reward that decreases as a completion nears its cap (DAPO, Eq. 13)."""

from collections.abc import Callable
from typing import Any

from encore.recipe.caps import Caps, start
from encore.recipe.reward_names import OVERLONG


def soft_overlong(caps: Caps, cache: int) -> Callable[..., list[float]]:
    """Return a reward function: DAPO's penalty (Eq. 13) for completions that are long.

    The length y is in tokens, the end of sequence included. The penalty is 0 for y <= cap - cache, -1 for
    y >= cap, and linear between: (cap - cache - y) / cache. The cap is the one at the trainer's present step.
    """
    # imported here, because the other rewards need no TRL
    from trl.rewards import get_soft_overlong_punishment

    punish = {step: get_soft_overlong_punishment(cap, cache) for step, cap in caps.items()}

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        step = getattr(columns.get("trainer_state"), "global_step", 0)
        return punish[start(caps, step)](completion_ids)

    reward.__name__ = OVERLONG
    return reward
