"""The key `caps` of a `grpo` stage: the caps of completions that rise at given optimizer steps."""

from collections.abc import Mapping
from itertools import pairwise
from math import lcm
from typing import Any

from encore.errors import UserError
from encore.objectives.caps import Caps, of_stage
from encore.recipe.batch import rollout


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError unless the caps of a resolved stage rise from step 0 on, within its steps.

    Where their steps fall between rollouts is checked as far as `args` says how long a rollout lasts.
    """
    caps, args = of_stage(stage), stage["args"]
    if not caps or next(iter(caps)) != 0:
        raise UserError(f"caps: expected the first at step 0, got {next(iter(caps), 'none')}")
    for before, after in pairwise(caps):
        if caps[after] <= caps[before]:
            raise UserError(f"caps.{after}: expected more than {caps[before]}, got {caps[after]}")
    fixed = args.get("max_completion_length", caps[0])
    if fixed != caps[0]:
        raise UserError(
            f"args.max_completion_length: {fixed}, but caps begins with {caps[0]}; remove one of them"
        )
    last, steps = max(caps), args.get("max_steps", -1)
    if steps <= 0:
        raise UserError("args.max_steps: missing; caps counts its steps")
    if last >= steps:
        raise UserError(f"caps.{last}: expected less than args.max_steps {steps}")
    if lengths := rollout(stage):
        check_boundaries(caps, lengths[0] * args.get("num_iterations", 1), lengths[1])


def check_boundaries(caps: Caps, micro: int, window: int) -> None:
    """Raise UserError where a cap changes within a rollout of `micro` micro-steps, `window` to a step.

    Any other unit that both have does as well.
    """
    every = lcm(micro, window) // window  # optimizer steps
    for step in caps:
        if step % every:
            near = max(every, round(step / every) * every)
            raise UserError(
                f"caps.{step}: a rollout lasts {micro / window:g} steps, and the cap changes between two; "
                f"nearest: {near}"
            )
