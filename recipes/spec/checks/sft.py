"""Keys of an `sft` stage that contradict each other; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from recipes.errors import UserError


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError unless there is one source of demonstrations: a stage, a world or a Hub dataset."""
    own = [key for key in ("task", "template", "corpus", "problems") if key in stage]
    if "data" in stage.get("needs", {}):
        if own:
            raise UserError(f"{own[0]}: needs.data has the demonstrations; remove one of the two")
        return
    task = stage.get("task")
    if task is None:
        raise UserError("needs.data: missing; or give the task, template and corpus of demonstrations")
    absent = "template" if "template" not in stage else "corpus" if "corpus" not in stage else None
    if "world" in task and absent:
        raise UserError(f"{absent}: missing; a world writes its demonstrations by it")
    for key in ("documents", "mixture") if "world" in task else ():
        if key not in stage["corpus"]:
            raise UserError(f"corpus.{key}: missing")
    if "world" in task and "problems" in stage:
        raise UserError("problems: of a Hub dataset; a world writes corpus.documents")
