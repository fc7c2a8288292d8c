"""The cap of a completion's length where it rises in mid-run: {optimizer steps done: tokens}, from 0 on.

DeepSeek-R1-Zero goes from 32,768 to 65,536 tokens at step 8,200 (Nature 2025, Methods).
"""

from collections.abc import Mapping
from typing import Any

Caps = dict[int, int]


def of_stage(stage: Mapping[str, Any]) -> Caps:
    """The key `caps` of a stage, in order; without it, `args.max_completion_length` from the start.

    Empty where a stage has neither. Keys may be text, as in JSON.
    """
    if "caps" in stage:
        return dict(sorted((int(step), cap) for step, cap in stage["caps"].items()))
    fixed = stage.get("args", {}).get("max_completion_length")
    return {} if fixed is None else {0: fixed}


def start(caps: Mapping[int, int], step: int) -> int:
    """The key in force once `step` optimizer steps are done."""
    return max(key for key in caps if key <= step)
