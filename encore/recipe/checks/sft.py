"""Keys of an `sft` stage that contradict each other; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError
from encore.recipe.checks import demonstrations

FIRST = ("data", "task")  # names of the source that `also` goes with


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError unless there is one source of demonstrations, a stage, a world or a Hub dataset; and
    those of `also` are sound and leave it a share."""
    own = [key for key in ("task", "template", "corpus") if key in stage]
    if "data" in stage.get("needs", {}):
        if own:
            raise UserError(f"{own[0]}: needs.data has the demonstrations; remove one of the two")
        if isinstance(stage.get("chat"), Mapping):
            raise UserError(
                "chat: the prompts of needs.data are complete; write chat: true, for how a reply ends"
            )
    elif "task" not in stage:
        raise UserError("needs.data: missing; or give the task, template and corpus of demonstrations")
    else:
        demonstrations.check_keys(stage)
    for name, source in stage.get("also", {}).items():
        if name in FIRST:
            raise UserError(f"also.{name}: a reserved name; call the source something else")
        demonstrations.check_source(source, f"also.{name}")
    total = sum(source.get("share", 0) for source in stage.get("also", {}).values())
    if total >= 1:
        raise UserError(f"also: expected shares that add up to less than 1, got {total:g}")
